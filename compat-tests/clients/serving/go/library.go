package serving

import "context"

// Library is what a driver makes of one client library. Errors are the library's own, so that the loop can tell them.
type Library interface {
	Topics
	Groups

	// Produce sends all records, waits for all and returns where each was written.
	Produce(ctx context.Context, topic string, records []Outgoing, options ProduceOptions) ([]Position, error)
	// OpenProducer opens a producer that keeps trying over a restart of the broker, idempotent where the library can.
	OpenProducer(topic string) (Producer, error)
	// OpenConsumer opens a consumer that starts at the beginning where nothing is committed, and commits only when told.
	OpenConsumer(ctx context.Context, options ConsumerOptions) (Consumer, error)

	DescribeCluster(ctx context.Context) (ClusterDescription, error)

	// ErrorCode returns Kafka's code of an error of the library, or nil when it has none.
	ErrorCode(err error) *int
}

// Topics is what a library can do with topics.
type Topics interface {
	CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error
	DeleteTopic(ctx context.Context, topic string) error
	ListTopics(ctx context.Context) ([]string, error)
	CountPartitions(ctx context.Context, topic string) (int, error)
	// CreatePartitions raises the number of partitions to total.
	CreatePartitions(ctx context.Context, topic string, total int) error
	// TopicConfig returns the value in force for a setting, nil when it has none.
	TopicConfig(ctx context.Context, topic, key string) (*string, error)
	// ChangeTopicConfig changes settings and leaves the others.
	ChangeTopicConfig(ctx context.Context, topic string, changes []ConfigChange) error
	// DeleteRecords deletes what lies before an offset and returns the partition's new beginning.
	DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error)
	// OffsetRange returns the beginning and the end of each partition.
	OffsetRange(ctx context.Context, topic string) ([][2]int64, error)
	// FindOffset returns the first record at or after a timestamp in milliseconds, nil when there is none.
	FindOffset(ctx context.Context, partition TopicPartition, timestamp int64) (*OffsetAndTimestamp, error)
}

// Groups is what a library can do with groups.
type Groups interface {
	ListGroups(ctx context.Context) ([]string, error)
	DescribeGroup(ctx context.Context, group string) (GroupDescription, error)
	DeleteGroup(ctx context.Context, group string) error
	// Committed returns the group's committed offset, nil when it has none.
	Committed(ctx context.Context, group string, partition TopicPartition) (*int64, error)
	// AlterOffset sets the committed offset of a group without members.
	AlterOffset(ctx context.Context, group string, partition TopicPartition, offset int64) error
}

// ClusterDescription is the cluster as a broker describes it.
type ClusterDescription struct {
	ClusterID  string `json:"cluster_id"`
	Controller int32  `json:"controller"`
	Nodes      []Node `json:"nodes"`
}

// GroupDescription is a group as its coordinator describes it.
type GroupDescription struct {
	State     string   `json:"state"`
	Protocol  string   `json:"protocol"`
	Members   int      `json:"members"`
	Instances []string `json:"instances"` // of the static members, sorted
}

// ProduceOptions say how to produce.
type ProduceOptions struct {
	Compression     string `json:"compression"` // empty for none
	Idempotent      bool   `json:"idempotent"`
	MaxRequestBytes int    `json:"max_request_bytes"`
}

// Producer sends single values in the background.
type Producer interface {
	// Send calls done, on any goroutine, when the value is acknowledged or given up.
	Send(value []byte, done func(Position, error))
	Close() error
}

// ConsumerOptions say what to read: topics as a member of a group, or partitions alone.
type ConsumerOptions struct {
	Topics     []string         `json:"topics"`
	Partitions []TopicPartition `json:"partitions"`
	Group      string           `json:"group"`
	Instance   string           `json:"instance"` // empty for a member that is not static
	Assignor   string           `json:"assignor"`
}

// Consumer reads. Its methods are called one at a time.
type Consumer interface {
	// Poll returns at most max records, as soon as there is one, or none when the context ends first.
	Poll(ctx context.Context, max int) ([]Record, error)
	// Assignment returns the partitions that the member holds now.
	Assignment() []TopicPartition
	// Seek sets where the consumer of partitions reads next.
	Seek(ctx context.Context, partition TopicPartition, offset int64) error
	// Commit commits the positions after the polled records and waits for the answer.
	Commit(ctx context.Context) error
	// Moves returns how the partitions came and went.
	Moves() []Move
	// MemberID returns the id that the coordinator gave to the member.
	MemberID() string
	// Close closes; a member that is not static leaves its group.
	Close() error
}
