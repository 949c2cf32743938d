package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"odradek/serving"
)

// The reader's limit, above the largest record of the tests.
const maxFetchBytes = 10 << 20

func (l *library) CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	client, closeClient := l.client()
	defer closeClient()
	wanted := kafka.TopicConfig{Topic: topic, NumPartitions: int(partitions), ReplicationFactor: 1}
	for key, value := range configs {
		wanted.ConfigEntries = append(wanted.ConfigEntries, kafka.ConfigEntry{ConfigName: key, ConfigValue: value})
	}
	answer, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{wanted}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (l *library) DeleteTopic(ctx context.Context, topic string) error {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (l *library) ListTopics(ctx context.Context) ([]string, error) {
	topics, err := l.metadata(ctx)
	var names []string
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	return names, err
}

func (l *library) CountPartitions(ctx context.Context, topic string) (int, error) {
	topics, err := l.metadata(ctx, topic)
	if err != nil {
		return 0, err
	}
	return len(topics[0].Partitions), topics[0].Error
}

func (l *library) metadata(ctx context.Context, topics ...string) ([]kafka.Topic, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, err
	}
	return answer.Topics, nil
}

func (l *library) CreatePartitions(ctx context.Context, topic string, total int) error {
	client, closeClient := l.client()
	defer closeClient()
	wanted := []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(total)}}
	answer, err := client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: wanted})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (l *library) TopicConfig(ctx context.Context, topic, key string) (*string, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{
			{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{key}},
		},
	})
	if err != nil {
		return nil, err
	}
	described := answer.Resources[0]
	if described.Error != nil {
		return nil, described.Error
	}
	if len(described.ConfigEntries) != 1 {
		return nil, fmt.Errorf("%d settings described for %s", len(described.ConfigEntries), key)
	}
	return &described.ConfigEntries[0].ConfigValue, nil
}

var configOperations = map[string]kafka.ConfigOperation{
	"set":      kafka.ConfigOperationSet,
	"delete":   kafka.ConfigOperationDelete,
	"append":   kafka.ConfigOperationAppend,
	"subtract": kafka.ConfigOperationSubtract,
}

func (l *library) ChangeTopicConfig(ctx context.Context, topic string, changes []serving.ConfigChange) error {
	client, closeClient := l.client()
	defer closeClient()
	resource := kafka.IncrementalAlterConfigsRequestResource{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
	}
	for _, change := range changes {
		one := kafka.IncrementalAlterConfigsRequestConfig{
			Name: change.Key, ConfigOperation: configOperations[change.Operation],
		}
		if change.Value != nil {
			one.Value = *change.Value
		}
		resource.Configs = append(resource.Configs, one)
	}
	answer, err := client.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{resource},
	})
	if err != nil {
		return err
	}
	return answer.Resources[0].Error
}

func (l *library) DeleteRecords(context.Context, string, int32, int64) (int64, error) {
	return 0, errors.New("kafka-go cannot delete records")
}

func (l *library) OffsetRange(ctx context.Context, topic string) ([][2]int64, error) {
	count, err := l.CountPartitions(ctx, topic)
	if err != nil {
		return nil, err
	}
	var asked []kafka.OffsetRequest
	for partition := range count {
		asked = append(asked, kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition))
	}
	found, err := l.listOffsets(ctx, topic, asked...)
	if err != nil {
		return nil, err
	}
	ranges := make([][2]int64, count)
	for _, one := range found {
		ranges[one.Partition] = [2]int64{one.FirstOffset, one.LastOffset}
	}
	return ranges, nil
}

// FindOffset reads the record that it finds: in the place of its timestamp kafka-go tells the one that was asked for.
func (l *library) FindOffset(
	ctx context.Context, partition serving.TopicPartition, timestamp int64,
) (*serving.OffsetAndTimestamp, error) {
	asked := kafka.TimeOffsetOf(int(partition.Partition), time.UnixMilli(timestamp))
	found, err := l.listOffsets(ctx, partition.Topic, asked)
	if err != nil {
		return nil, err
	}
	for offset := range found[0].Offsets {
		if offset >= 0 {
			at, err := l.timestamp(ctx, partition, offset)
			return &serving.OffsetAndTimestamp{offset, at}, err
		}
	}
	return nil, nil
}

func (l *library) timestamp(
	ctx context.Context, partition serving.TopicPartition, offset int64,
) (timestamp int64, err error) {
	connection, err := kafka.DialLeader(ctx, "tcp", l.bootstrap, partition.Topic, int(partition.Partition))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	if _, err := connection.Seek(offset, kafka.SeekAbsolute); err != nil {
		return 0, err
	}
	message, err := connection.ReadMessage(maxFetchBytes)
	return message.Time.UnixMilli(), err
}

func (l *library) listOffsets(
	ctx context.Context, topic string, asked ...kafka.OffsetRequest,
) ([]kafka.PartitionOffsets, error) {
	client, closeClient := l.client()
	defer closeClient()
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: asked},
	})
	if err != nil {
		return nil, err
	}
	for _, one := range answer.Topics[topic] {
		if one.Error != nil {
			return nil, one.Error
		}
	}
	return answer.Topics[topic], nil
}
