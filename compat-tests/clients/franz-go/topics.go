package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"odradek/serving"
)

func (l *library) CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	values := map[string]*string{}
	for key, value := range configs {
		values[key] = &value
	}
	_, err := l.admin.CreateTopic(ctx, partitions, 1, values, topic)
	return err
}

func (l *library) DeleteTopic(ctx context.Context, topic string) error {
	_, err := l.admin.DeleteTopic(ctx, topic)
	return err
}

func (l *library) ListTopics(ctx context.Context) ([]string, error) {
	topics, err := l.topics(ctx)
	return topics.Names(), err
}

func (l *library) CountPartitions(ctx context.Context, topic string) (int, error) {
	topics, err := l.topics(ctx, topic)
	if err != nil {
		return 0, err
	}
	return len(topics[topic].Partitions), topics[topic].Err
}

// topics asks with a client of its own: one that has asked before answers for some seconds from what it knows.
func (l *library) topics(ctx context.Context, names ...string) (kadm.TopicDetails, error) {
	client, err := l.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return kadm.NewClient(client).ListTopics(ctx, names...)
}

func (l *library) CreatePartitions(ctx context.Context, topic string, total int) error {
	answers, err := l.admin.UpdatePartitions(ctx, total, topic)
	if err != nil {
		return err
	}
	return answers.Error()
}

func (l *library) TopicConfig(ctx context.Context, topic, key string) (*string, error) {
	described, err := l.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	resource, err := described.On(topic, nil)
	if err := errors.Join(err, resource.Err); err != nil {
		return nil, err
	}
	index := slices.IndexFunc(resource.Configs, func(config kadm.Config) bool { return config.Key == key })
	if index < 0 {
		return nil, fmt.Errorf("%s is no setting of a topic", key)
	}
	return resource.Configs[index].Value, nil
}

var configOperations = map[string]kadm.IncrementalOp{
	"set":      kadm.SetConfig,
	"delete":   kadm.DeleteConfig,
	"append":   kadm.AppendConfig,
	"subtract": kadm.SubtractConfig,
}

func (l *library) ChangeTopicConfig(ctx context.Context, topic string, changes []serving.ConfigChange) error {
	var wanted []kadm.AlterConfig
	for _, change := range changes {
		one := kadm.AlterConfig{Op: configOperations[change.Operation], Name: change.Key, Value: change.Value}
		wanted = append(wanted, one)
	}
	answers, err := l.admin.AlterTopicConfigs(ctx, wanted, topic)
	if err != nil {
		return err
	}
	answer, err := answers.On(topic, nil)
	return errors.Join(err, answer.Err)
}

func (l *library) DeleteRecords(ctx context.Context, topic string, partition int32, before int64) (int64, error) {
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, partition, before, -1)
	answers, err := l.admin.DeleteRecords(ctx, offsets)
	if err != nil {
		return 0, err
	}
	answer, err := answers.On(topic, partition, nil)
	return answer.LowWatermark, errors.Join(err, answer.Err)
}

func (l *library) OffsetRange(ctx context.Context, topic string) ([][2]int64, error) {
	beginnings, err := l.admin.ListStartOffsets(ctx, topic)
	if err := errors.Join(err, beginnings.Error()); err != nil {
		return nil, err
	}
	ends, err := l.admin.ListEndOffsets(ctx, topic)
	if err := errors.Join(err, ends.Error()); err != nil {
		return nil, err
	}
	ranges := make([][2]int64, len(ends[topic]))
	for partition, end := range ends[topic] {
		ranges[partition] = [2]int64{beginnings[topic][partition].Offset, end.Offset}
	}
	return ranges, nil
}

func (l *library) FindOffset(
	ctx context.Context, partition serving.TopicPartition, timestamp int64,
) (*serving.OffsetAndTimestamp, error) {
	listed, err := l.admin.ListOffsetsAfterMilli(ctx, timestamp, partition.Topic)
	if err := errors.Join(err, listed.Error()); err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(partition.Topic, partition.Partition)
	if found.Timestamp < 0 { // kadm's answer when there is none is the end of the partition
		return nil, nil
	}
	return &serving.OffsetAndTimestamp{found.Offset, found.Timestamp}, nil
}
