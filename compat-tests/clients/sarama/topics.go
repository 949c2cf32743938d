package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/IBM/sarama"

	"odradek/serving"
)

func (l *library) do(ctx context.Context, run func(sarama.ClusterAdmin) error) error {
	_, err := withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (any, error) { return nil, run(admin) })
	return err
}

func (l *library) CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
	for key, value := range configs {
		detail.ConfigEntries[key] = &value
	}
	return l.do(ctx, func(admin sarama.ClusterAdmin) error { return admin.CreateTopic(topic, detail, false) })
}

func (l *library) DeleteTopic(ctx context.Context, topic string) error {
	return l.do(ctx, func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

func (l *library) ListTopics(ctx context.Context) ([]string, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) ([]string, error) {
		topics, err := admin.ListTopics()
		return slices.Collect(maps.Keys(topics)), err
	})
}

func (l *library) CountPartitions(ctx context.Context, topic string) (int, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (int, error) {
		described, err := admin.DescribeTopics([]string{topic})
		if err != nil {
			return 0, err
		}
		if described[0].Err != sarama.ErrNoError {
			return 0, described[0].Err
		}
		return len(described[0].Partitions), nil
	})
}

func (l *library) CreatePartitions(ctx context.Context, topic string, total int) error {
	return l.do(ctx, func(admin sarama.ClusterAdmin) error {
		return admin.CreatePartitions(topic, int32(total), nil, false)
	})
}

func (l *library) TopicConfig(ctx context.Context, topic, key string) (*string, error) {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{key}}
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (*string, error) {
		entries, err := admin.DescribeConfig(resource)
		if err != nil {
			return nil, err
		}
		if len(entries) != 1 {
			return nil, fmt.Errorf("%d settings described for %s", len(entries), key)
		}
		return &entries[0].Value, nil
	})
}

var configOperations = map[string]sarama.IncrementalAlterConfigsOperation{
	"set":      sarama.IncrementalAlterConfigsOperationSet,
	"delete":   sarama.IncrementalAlterConfigsOperationDelete,
	"append":   sarama.IncrementalAlterConfigsOperationAppend,
	"subtract": sarama.IncrementalAlterConfigsOperationSubtract,
}

func (l *library) ChangeTopicConfig(ctx context.Context, topic string, changes []serving.ConfigChange) error {
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for _, change := range changes {
		entries[change.Key] = sarama.IncrementalAlterConfigsEntry{
			Operation: configOperations[change.Operation], Value: change.Value,
		}
	}
	return l.do(ctx, func(admin sarama.ClusterAdmin) error {
		return admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	})
}

// DeleteRecords asks for the new beginning, which sarama's own answer does not tell.
func (l *library) DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (int64, error) {
		if err := admin.DeleteRecords(topic, map[int32]int64{partition: before}); err != nil {
			return 0, err
		}
		found, err := listOffset(admin, serving.TopicPartition{Topic: topic, Partition: partition}, sarama.OffsetOldest)
		if err != nil {
			return 0, err
		}
		return found.Offset, nil
	})
}

func (l *library) OffsetRange(ctx context.Context, topic string) ([][2]int64, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) ([][2]int64, error) {
		described, err := admin.DescribeTopics([]string{topic})
		if err != nil {
			return nil, err
		}
		ranges := make([][2]int64, len(described[0].Partitions))
		for index := range ranges {
			partition := serving.TopicPartition{Topic: topic, Partition: int32(index)}
			for end, time := range []int64{sarama.OffsetOldest, sarama.OffsetNewest} {
				found, err := listOffset(admin, partition, time)
				if err != nil {
					return nil, err
				}
				ranges[index][end] = found.Offset
			}
		}
		return ranges, nil
	})
}

func (l *library) FindOffset(
	ctx context.Context, partition serving.TopicPartition, timestamp int64,
) (*serving.OffsetAndTimestamp, error) {
	return withAdmin(ctx, l, func(admin sarama.ClusterAdmin) (*serving.OffsetAndTimestamp, error) {
		found, err := listOffset(admin, partition, timestamp)
		if err != nil || found.Offset < 0 {
			return nil, err
		}
		return &serving.OffsetAndTimestamp{found.Offset, found.Timestamp}, nil
	})
}

func listOffset(
	admin sarama.ClusterAdmin, partition serving.TopicPartition, time int64,
) (*sarama.OffsetResult, error) {
	asked := map[string]map[int32]int64{partition.Topic: {partition.Partition: time}}
	listed, err := admin.ListOffsets(asked, nil)
	if err != nil {
		return nil, err
	}
	found := listed[partition.Topic][partition.Partition]
	if !errors.Is(found.Err, sarama.ErrNoError) {
		return nil, found.Err
	}
	return found, nil
}
