package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"odradek/serving"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

type consumer struct {
	serving.Holdings
	client *kgo.Client
}

func (l *library) OpenConsumer(_ context.Context, options serving.ConsumerOptions) (serving.Consumer, error) {
	opened := &consumer{}
	var settings []kgo.Opt
	if options.Topics != nil {
		balancer, ok := balancers[options.Assignor]
		if !ok {
			return nil, fmt.Errorf("%s is no balancer of franz-go", options.Assignor)
		}
		settings = opened.groupSettings(options, balancer)
	} else {
		settings = []kgo.Opt{kgo.ConsumePartitions(opened.fromTheBeginning(options.Partitions))}
	}
	settings = append(settings, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMaxAge(5*time.Second))
	var err error
	opened.client, err = l.client(settings...)
	return opened, err
}

func (c *consumer) groupSettings(options serving.ConsumerOptions, balancer kgo.GroupBalancer) []kgo.Opt {
	settings := []kgo.Opt{
		kgo.ConsumerGroup(options.Group),
		kgo.ConsumeTopics(options.Topics...),
		kgo.Balancers(balancer),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(10 * time.Second),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.OnPartitionsAssigned(forEach(c.Add)),
		kgo.OnPartitionsRevoked(forEach(c.Drop)),
		kgo.OnPartitionsLost(forEach(c.Drop)),
	}
	if options.Instance != "" {
		settings = append(settings, kgo.InstanceID(options.Instance))
	}
	return settings
}

func (c *consumer) fromTheBeginning(partitions []serving.TopicPartition) map[string]map[int32]kgo.Offset {
	offsets := map[string]map[int32]kgo.Offset{}
	for _, partition := range partitions {
		if offsets[partition.Topic] == nil {
			offsets[partition.Topic] = map[int32]kgo.Offset{}
		}
		offsets[partition.Topic][partition.Partition] = kgo.NewOffset().AtStart()
		c.Add(partition)
	}
	return offsets
}

// forEach returns what the client calls when partitions come or go.
func forEach(note func(serving.TopicPartition)) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		for topic, partitions := range topics {
			for _, partition := range partitions {
				note(serving.TopicPartition{Topic: topic, Partition: partition})
			}
		}
	}
}

func (c *consumer) Poll(ctx context.Context, max int) ([]serving.Record, error) {
	fetches := c.client.PollRecords(ctx, max)
	for _, failed := range fetches.Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return nil, failed.Err
		}
	}
	var records []serving.Record
	fetches.EachRecord(func(record *kgo.Record) {
		records = append(records, incoming(record))
	})
	return records, nil
}

func incoming(record *kgo.Record) serving.Record {
	headers := []serving.Header{}
	for _, header := range record.Headers {
		headers = append(headers, serving.Header{Name: header.Key, Value: header.Value})
	}
	return serving.Record{
		Topic:     record.Topic,
		Partition: record.Partition,
		Offset:    record.Offset,
		Timestamp: record.Timestamp.UnixMilli(),
		Key:       record.Key,
		Value:     record.Value,
		Headers:   headers,
	}
}

// Seek takes the partition away and gives it back at the offset: SetOffsets is for what was polled already.
func (c *consumer) Seek(_ context.Context, partition serving.TopicPartition, offset int64) error {
	c.client.RemoveConsumePartitions(map[string][]int32{partition.Topic: {partition.Partition}})
	c.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{
		partition.Topic: {partition.Partition: kgo.NewOffset().At(offset)},
	})
	return nil
}

func (c *consumer) Commit(ctx context.Context) error {
	return c.client.CommitUncommittedOffsets(ctx)
}

func (c *consumer) MemberID() string {
	id, _ := c.client.GroupMetadata()
	return id
}

func (c *consumer) Close() error {
	c.client.Close()
	return nil
}
