package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	pollTimeout   = 20 * time.Second
	settleTimeout = 30 * time.Second
	// How long one consumer of several is polled before the next has its turn, and how often assignments are looked at.
	turn = 50 * time.Millisecond
)

// consuming holds the open consumers by the names that the test gave them.
type consuming struct {
	library   Library
	consumers map[string]Consumer
}

type onConsumer struct {
	Name      string `json:"name"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

type onConsumers struct {
	Names      []string `json:"names"`
	Count      int      `json:"count"`
	Partitions int      `json:"partitions"`
}

func (c *consuming) open(ctx context.Context, arguments struct {
	Name string `json:"name"`
	ConsumerOptions
}) error {
	options := arguments.ConsumerOptions
	options.Assignor = cmp.Or(options.Assignor, "range")
	consumer, err := c.library.OpenConsumer(ctx, options)
	if err == nil {
		c.consumers[arguments.Name] = consumer
	}
	return err
}

// poll polls the consumers in turn until they have count records together.
func (c *consuming) poll(_ context.Context, arguments onConsumers) (map[string][]Record, error) {
	deadline := time.Now().Add(pollTimeout)
	seen := map[string][]Record{}
	for _, name := range arguments.Names {
		seen[name] = []Record{}
	}
	for missing := arguments.Count; missing > 0; {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d records missing", missing, arguments.Count)
		}
		for _, name := range arguments.Names {
			records, err := pollOnce(c.consumers[name], missing)
			if err != nil {
				return nil, err
			}
			seen[name] = append(seen[name], records...)
			missing -= len(records)
		}
	}
	return seen, nil
}

func pollOnce(consumer Consumer, atMost int) ([]Record, error) {
	if atMost <= 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), turn)
	defer cancel()
	return consumer.Poll(ctx, atMost)
}

// settle waits until each consumer holds partitions and all hold as many as asked, none of them twice.
func (c *consuming) settle(_ context.Context, arguments onConsumers) (map[string][]TopicPartition, error) {
	deadline := time.After(settleTimeout)
	looks := time.NewTicker(turn)
	defer looks.Stop()
	for {
		held := map[string][]TopicPartition{}
		together := map[TopicPartition]int{}
		settled := true
		for _, name := range arguments.Names {
			held[name] = slices.SortedFunc(slices.Values(c.consumers[name].Assignment()), comparePartitions)
			settled = settled && len(held[name]) > 0
			for _, partition := range held[name] {
				together[partition]++
				settled = settled && together[partition] == 1
			}
		}
		if settled && len(together) == arguments.Partitions {
			return held, nil
		}
		select {
		case <-looks.C:
		case <-deadline:
			return nil, fmt.Errorf("not settled: %v", held)
		}
	}
}

func (c *consuming) rebalances(_ context.Context, arguments onConsumer) ([]Move, error) {
	return c.consumers[arguments.Name].Moves(), nil
}

func (c *consuming) memberID(_ context.Context, arguments onConsumer) (string, error) {
	return c.consumers[arguments.Name].MemberID(), nil
}

func (c *consuming) seek(ctx context.Context, arguments onConsumer) error {
	partition := TopicPartition{arguments.Topic, arguments.Partition}
	return c.consumers[arguments.Name].Seek(ctx, partition, arguments.Offset)
}

func (c *consuming) commit(ctx context.Context, arguments onConsumer) error {
	return c.consumers[arguments.Name].Commit(ctx)
}

func (c *consuming) close(_ context.Context, arguments onConsumer) error {
	consumer := c.consumers[arguments.Name]
	delete(c.consumers, arguments.Name)
	return consumer.Close()
}

// readAll returns every record between the beginning and the end of the topic, by partition and offset.
func (c *consuming) readAll(ctx context.Context, arguments onTopic) (records []Record, err error) {
	ranges, err := c.library.OffsetRange(ctx, arguments.Topic)
	if err != nil {
		return nil, err
	}
	unread := map[int32]int64{}
	options := ConsumerOptions{}
	for partition, offsets := range ranges {
		if offsets[0] < offsets[1] {
			unread[int32(partition)] = offsets[1]
			options.Partitions = append(options.Partitions, TopicPartition{arguments.Topic, int32(partition)})
		}
	}
	records = []Record{}
	if len(unread) == 0 {
		return records, nil
	}
	consumer, err := c.library.OpenConsumer(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, consumer.Close()) }()
	for len(unread) > 0 {
		polled, err := consumer.Poll(ctx, 1000)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d records read, not all of %v", len(records), slices.Sorted(maps.Keys(unread)))
		}
		records = append(records, polled...)
		for _, record := range polled {
			if record.Offset+1 >= unread[record.Partition] {
				delete(unread, record.Partition)
			}
		}
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return records, nil
}

// reset closes what the last test left open.
func (c *consuming) reset() error {
	var failures []error
	for name := range c.consumers {
		failures = append(failures, c.close(context.Background(), onConsumer{Name: name}))
	}
	return errors.Join(failures...)
}

func comparePartitions(a, b TopicPartition) int {
	return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}
