package serving

import "context"

// Kafka's own default for the largest request.
const defaultMaxRequestBytes = 1 << 20

type onTopic struct {
	Topic      string            `json:"topic"`
	Partitions int32             `json:"partitions"`
	Configs    map[string]string `json:"configs"`
	Changes    []ConfigChange    `json:"changes"`
	Total      int               `json:"total"`
	Key        string            `json:"key"`
}

type onPartition struct {
	Topic      string  `json:"topic"`
	Partition  int32   `json:"partition"`
	Group      string  `json:"group"`
	Before     int64   `json:"before"`
	Offset     int64   `json:"offset"`
	Timestamps []int64 `json:"timestamps"`
}

func (a onPartition) partition() TopicPartition {
	return TopicPartition{a.Topic, a.Partition}
}

type onGroup struct {
	Group string `json:"group"`
}

type nothing struct{}

func operationsOf(library Library) map[string]operation {
	consuming := &consuming{library: library, consumers: map[string]Consumer{}}
	producing := &producing{library: library}
	operations := map[string]operation{
		"produce":           answering(producing.produce),
		"start_producing":   doing(producing.start),
		"wait_acknowledged": answering(producing.waitAcknowledged),
		"finish_producing":  answering(producing.finish),
		"open_consumer":     doing(consuming.open),
		"poll":              answering(consuming.poll),
		"settle":            answering(consuming.settle),
		"rebalances":        answering(consuming.rebalances),
		"member_id":         answering(consuming.memberID),
		"seek":              doing(consuming.seek),
		"commit":            doing(consuming.commit),
		"close_consumer":    doing(consuming.close),
		"read_all":          answering(consuming.readAll),
		"reset": doing(func(context.Context, nothing) error {
			producing.reset()
			return consuming.reset()
		}),
	}
	addTopics(operations, library)
	addGroupsAndCluster(operations, library)
	return operations
}

func addTopics(operations map[string]operation, library Library) {
	operations["create_topic"] = doing(func(ctx context.Context, a onTopic) error {
		return library.CreateTopic(ctx, a.Topic, max(a.Partitions, 1), a.Configs)
	})
	operations["delete_topic"] = doing(func(ctx context.Context, a onTopic) error {
		return library.DeleteTopic(ctx, a.Topic)
	})
	operations["list_topics"] = answering(func(ctx context.Context, _ nothing) ([]string, error) {
		return list(library.ListTopics(ctx))
	})
	operations["count_partitions"] = answering(func(ctx context.Context, a onTopic) (int, error) {
		return library.CountPartitions(ctx, a.Topic)
	})
	operations["create_partitions"] = doing(func(ctx context.Context, a onTopic) error {
		return library.CreatePartitions(ctx, a.Topic, a.Total)
	})
	operations["topic_config"] = answering(func(ctx context.Context, a onTopic) (*string, error) {
		return library.TopicConfig(ctx, a.Topic, a.Key)
	})
	operations["alter_topic_config"] = doing(func(ctx context.Context, a onTopic) error {
		var changes []ConfigChange
		for key, value := range a.Configs {
			changes = append(changes, ConfigChange{"set", key, &value})
		}
		return library.ChangeTopicConfig(ctx, a.Topic, changes)
	})
	operations["change_topic_config"] = doing(func(ctx context.Context, a onTopic) error {
		return library.ChangeTopicConfig(ctx, a.Topic, a.Changes)
	})
	operations["delete_records"] = answering(func(ctx context.Context, a onPartition) (int64, error) {
		return library.DeleteRecords(ctx, a.Topic, a.Partition, a.Before)
	})
	operations["offset_range"] = answering(func(ctx context.Context, a onTopic) ([][2]int64, error) {
		return library.OffsetRange(ctx, a.Topic)
	})
	operations["find_offsets"] = answering(func(ctx context.Context, a onPartition) ([]*OffsetAndTimestamp, error) {
		found := make([]*OffsetAndTimestamp, len(a.Timestamps))
		for index, timestamp := range a.Timestamps {
			one, err := library.FindOffset(ctx, a.partition(), timestamp)
			if err != nil {
				return nil, err
			}
			found[index] = one
		}
		return found, nil
	})
}

func addGroupsAndCluster(operations map[string]operation, library Library) {
	operations["list_groups"] = answering(func(ctx context.Context, _ nothing) ([]string, error) {
		return list(library.ListGroups(ctx))
	})
	operations["describe_group"] = answering(func(ctx context.Context, a onGroup) (GroupDescription, error) {
		return library.DescribeGroup(ctx, a.Group)
	})
	operations["delete_group"] = doing(func(ctx context.Context, a onGroup) error {
		return library.DeleteGroup(ctx, a.Group)
	})
	operations["committed"] = answering(func(ctx context.Context, a onPartition) (*int64, error) {
		return library.Committed(ctx, a.Group, a.partition())
	})
	operations["alter_offset"] = doing(func(ctx context.Context, a onPartition) error {
		return library.AlterOffset(ctx, a.Group, a.partition(), a.Offset)
	})
	operations["describe_cluster"] = answering(func(ctx context.Context, _ nothing) (ClusterDescription, error) {
		return library.DescribeCluster(ctx)
	})
}

// list returns names as the JSON list that they are even where there is none.
func list(names []string, err error) ([]string, error) {
	return append([]string{}, names...), err
}
