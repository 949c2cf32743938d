package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"odradek/serving"
)

var balancers = map[string]kafka.GroupBalancer{
	"range":      kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{},
}

// consumer reads each partition with a Reader on a goroutine of its own.
type consumer struct {
	*serving.Inbox
	library *library
	group   *kafka.ConsumerGroup // nil without a group
	cancel  context.CancelFunc
	running sync.WaitGroup

	mutex      sync.Mutex
	generation *kafka.Generation
	positions  map[string]map[int]int64 // after what was polled in this generation
	stops      map[serving.TopicPartition]func()
}

func (l *library) OpenConsumer(_ context.Context, options serving.ConsumerOptions) (serving.Consumer, error) {
	if options.Instance != "" {
		return nil, errors.New("kafka-go has no static members")
	}
	ctx, cancel := context.WithCancel(context.Background())
	opened := &consumer{
		Inbox: serving.NewInbox(), library: l, cancel: cancel, stops: map[serving.TopicPartition]func(){},
	}
	if options.Topics == nil {
		for _, partition := range options.Partitions {
			opened.start(ctx, partition, kafka.FirstOffset)
		}
		return opened, nil
	}
	balancer, ok := balancers[options.Assignor]
	if !ok {
		cancel()
		return nil, fmt.Errorf("%s is no balancer of kafka-go", options.Assignor)
	}
	var err error
	opened.group, err = kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                options.Group,
		Brokers:           []string{l.bootstrap},
		Topics:            options.Topics,
		GroupBalancers:    []kafka.GroupBalancer{balancer},
		StartOffset:       kafka.FirstOffset,
		SessionTimeout:    10 * time.Second,
		HeartbeatInterval: 500 * time.Millisecond,
		JoinGroupBackoff:  500 * time.Millisecond,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	opened.running.Add(1)
	go opened.follow(ctx)
	return opened, nil
}

// follow takes up each generation of the group; an error is one of a try to join, after which the group tries again.
func (c *consumer) follow(ctx context.Context) {
	defer c.running.Done()
	for ctx.Err() == nil {
		generation, err := c.group.Next(ctx)
		if err != nil {
			continue
		}
		c.mutex.Lock()
		c.generation = generation
		c.positions = map[string]map[int]int64{}
		c.mutex.Unlock()
		for topic, assignments := range generation.Assignments {
			for _, assignment := range assignments {
				partition := serving.TopicPartition{Topic: topic, Partition: int32(assignment.ID)}
				generation.Start(func(ctx context.Context) { c.read(ctx, partition, assignment.Offset) })
			}
		}
	}
}

// start reads a partition until the consumer closes or seeks.
func (c *consumer) start(ctx context.Context, partition serving.TopicPartition, offset int64) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	c.stops[partition] = func() { cancel(); <-ended }
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		defer close(ended)
		c.read(ctx, partition, offset)
	}()
}

func (c *consumer) read(ctx context.Context, partition serving.TopicPartition, offset int64) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{c.library.bootstrap},
		Topic:     partition.Topic,
		Partition: int(partition.Partition),
		MaxWait:   100 * time.Millisecond,
		MaxBytes:  maxFetchBytes,
	})
	defer reader.Close() //nolint:errcheck // of a reader that has done its work
	if err := reader.SetOffset(offset); err != nil {
		return
	}
	c.Add(partition)
	defer c.Drop(partition)
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil { // the context has ended: a reader tries again after all else
			return
		}
		c.Put(incoming(message))
	}
}

func incoming(message kafka.Message) serving.Record {
	headers := []serving.Header{}
	for _, header := range message.Headers {
		headers = append(headers, serving.Header{Name: header.Key, Value: header.Value})
	}
	return serving.Record{
		Topic:     message.Topic,
		Partition: int32(message.Partition),
		Offset:    message.Offset,
		Timestamp: message.Time.UnixMilli(),
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headers,
	}
}

func (c *consumer) Poll(ctx context.Context, max int) ([]serving.Record, error) {
	records := c.Take(ctx, max)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, record := range records {
		if c.generation != nil {
			if c.positions[record.Topic] == nil {
				c.positions[record.Topic] = map[int]int64{}
			}
			c.positions[record.Topic][int(record.Partition)] = record.Offset + 1
		}
	}
	return records, nil
}

func (c *consumer) Seek(_ context.Context, partition serving.TopicPartition, offset int64) error {
	if c.group != nil {
		return errors.New("the driver seeks only what has no group")
	}
	c.stops[partition]()
	c.start(context.Background(), partition, offset)
	return nil
}

func (c *consumer) Commit(context.Context) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.generation.CommitOffsets(c.positions)
}

func (c *consumer) MemberID() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.generation.MemberID
}

func (c *consumer) Close() error {
	var err error
	c.cancel()
	for _, stop := range c.stops {
		stop()
	}
	if c.group != nil {
		err = c.group.Close()
	}
	c.running.Wait()
	return err
}
