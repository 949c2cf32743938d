package main

import (
	"context"
	"errors"

	"github.com/IBM/sarama"

	"odradek/serving"
)

// partitionReader reads partitions alone, without a group.
type partitionReader struct {
	*serving.Inbox
	consumer sarama.Consumer
	open     map[serving.TopicPartition]sarama.PartitionConsumer
}

func (l *library) openPartitions(partitions []serving.TopicPartition) (serving.Consumer, error) {
	consumer, err := sarama.NewConsumer(l.bootstrap, l.config())
	if err != nil {
		return nil, err
	}
	opened := &partitionReader{serving.NewInbox(), consumer, map[serving.TopicPartition]sarama.PartitionConsumer{}}
	for _, partition := range partitions {
		if err := opened.read(partition, sarama.OffsetOldest); err != nil {
			return nil, errors.Join(err, opened.Close())
		}
	}
	return opened, nil
}

func (r *partitionReader) read(partition serving.TopicPartition, offset int64) error {
	consumer, err := r.consumer.ConsumePartition(partition.Topic, partition.Partition, offset)
	if err != nil {
		return err
	}
	r.open[partition] = consumer
	r.Add(partition)
	go func() {
		for message := range consumer.Messages() {
			r.Put(incoming(message))
		}
	}()
	return nil
}

func (r *partitionReader) Poll(ctx context.Context, max int) ([]serving.Record, error) {
	return r.Take(ctx, max), nil
}

func (r *partitionReader) Seek(_ context.Context, partition serving.TopicPartition, offset int64) error {
	if err := r.open[partition].Close(); err != nil {
		return err
	}
	r.Drop(partition)
	return r.read(partition, offset)
}

func (r *partitionReader) Commit(context.Context) error {
	return errors.New("a consumer without a group has nothing to commit to")
}

func (r *partitionReader) MemberID() string {
	return ""
}

func (r *partitionReader) Close() error {
	var failures []error
	for _, consumer := range r.open {
		failures = append(failures, consumer.Close())
	}
	return errors.Join(append(failures, r.consumer.Close())...)
}

func incoming(message *sarama.ConsumerMessage) serving.Record {
	headers := []serving.Header{}
	for _, header := range message.Headers {
		headers = append(headers, serving.Header{Name: string(header.Key), Value: header.Value})
	}
	return serving.Record{
		Topic:     message.Topic,
		Partition: message.Partition,
		Offset:    message.Offset,
		Timestamp: message.Timestamp.UnixMilli(),
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
	}
}
