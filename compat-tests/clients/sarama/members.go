package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"odradek/serving"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func (l *library) OpenConsumer(_ context.Context, options serving.ConsumerOptions) (serving.Consumer, error) {
	if options.Topics == nil {
		return l.openPartitions(options.Partitions)
	}
	strategy, ok := strategies[options.Assignor]
	if !ok {
		return nil, fmt.Errorf("%s is no strategy of sarama", options.Assignor)
	}
	config := l.config()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy()}
	config.Consumer.Group.Session.Timeout = 10 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.InstanceId = options.Instance
	group, err := sarama.NewConsumerGroup(l.bootstrap, options.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	opened := &member{Inbox: serving.NewInbox(), group: group, cancel: cancel, ended: make(chan struct{})}
	go opened.run(ctx, options.Topics)
	go opened.keepErrors()
	return opened, nil
}

// member is a member of a group and the handler of its sessions.
type member struct {
	*serving.Inbox
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	ended  chan struct{}

	mutex   sync.Mutex
	session sarama.ConsumerGroupSession
	failure error // the last since it was told
}

// run joins again after each session, of which an eager strategy has one for each generation.
func (m *member) run(ctx context.Context, topics []string) {
	defer close(m.ended)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, topics, m); err != nil {
			m.fail(err)
		}
	}
}

func (m *member) keepErrors() {
	for err := range m.group.Errors() {
		m.fail(err)
	}
}

func (m *member) fail(err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.failure = err
}

// Setup is called when a session begins.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session = session
	return nil
}

// Cleanup is called when a session ends; its claims have ended before.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	return nil
}

// ConsumeClaim is called for each partition, and must return when its messages end.
func (m *member) ConsumeClaim(_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	partition := serving.TopicPartition{Topic: claim.Topic(), Partition: claim.Partition()}
	m.Add(partition)
	defer m.Drop(partition)
	for message := range claim.Messages() {
		m.Put(incoming(message))
	}
	return nil
}

func (m *member) Poll(ctx context.Context, max int) ([]serving.Record, error) {
	records := m.Take(ctx, max)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, record := range records {
		m.session.MarkOffset(record.Topic, record.Partition, record.Offset+1, "")
	}
	return records, nil
}

func (m *member) Seek(context.Context, serving.TopicPartition, int64) error {
	return errors.New("sarama cannot seek in a group")
}

// Commit tells what failed since the session began: sarama's own commit returns nothing.
func (m *member) Commit(context.Context) error {
	m.mutex.Lock()
	session := m.session
	m.failure = nil
	m.mutex.Unlock()
	session.Commit()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.failure
}

func (m *member) MemberID() string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.session.MemberID()
}

func (m *member) Close() error {
	m.cancel()
	<-m.ended
	return m.group.Close()
}
