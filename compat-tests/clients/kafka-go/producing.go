package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"odradek/serving"
)

var codecs = map[string]kafka.Compression{
	"":       0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

// placement is what a message carries to the balancer, which alone chooses partitions, and back from the writer.
type placement struct {
	number    int
	partition int
}

func (l *library) Produce(
	ctx context.Context, topic string, records []serving.Outgoing, options serving.ProduceOptions,
) (positions []serving.Position, err error) {
	if options.Idempotent {
		return nil, errors.New("kafka-go has no idempotent producer")
	}
	positions = make([]serving.Position, len(records))
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr:         kafka.TCP(l.bootstrap),
		Topic:        topic,
		Transport:    transport,
		Balancer:     &kafka.Hash{},
		BatchBytes:   int64(options.MaxRequestBytes),
		BatchTimeout: 20 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Compression:  codecs[options.Compression],
		Completion: func(messages []kafka.Message, _ error) {
			for _, message := range messages {
				positions[message.WriterData.(placement).number] = positionOf(message)
			}
		},
	}
	if serving.Placed(records) {
		writer.Balancer = kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
			return message.WriterData.(placement).partition
		})
	}
	messages := make([]kafka.Message, len(records))
	for number, record := range records {
		messages[number] = outgoing(number, record)
	}
	failure := writer.WriteMessages(ctx, messages...)
	if err := errors.Join(first(failure), writer.Close()); err != nil {
		return nil, err
	}
	return positions, nil
}

// first returns the first of the errors that a writer has for each message.
func first(failure error) error {
	var failures kafka.WriteErrors
	if !errors.As(failure, &failures) {
		return failure
	}
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func outgoing(number int, record serving.Outgoing) kafka.Message {
	placed := placement{number: number}
	if record.Partition != nil {
		placed.partition = int(*record.Partition)
	}
	message := kafka.Message{Key: record.Key, Value: record.Value, WriterData: placed}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
	}
	if record.Timestamp != nil {
		message.Time = time.UnixMilli(*record.Timestamp)
	}
	return message
}

func positionOf(message kafka.Message) serving.Position {
	return serving.Position{int64(message.Partition), message.Offset}
}

const retryDelay = 100 * time.Millisecond

type producer struct {
	writer    *kafka.Writer
	transport *kafka.Transport
}

// OpenProducer opens a producer that may write a record twice when the broker ends before it has answered.
func (l *library) OpenProducer(topic string) (serving.Producer, error) {
	transport := &kafka.Transport{}
	var writer *kafka.Writer
	writer = &kafka.Writer{
		Addr:         kafka.TCP(l.bootstrap),
		Topic:        topic,
		Transport:    transport,
		Async:        true,
		MaxAttempts:  600, // the writer gives up by count; a broker that starts again needs some seconds
		BatchTimeout: 5 * time.Millisecond,
		RequiredAcks: kafka.RequireAll,
		Completion: func(messages []kafka.Message, err error) {
			for _, message := range messages {
				if errors.Is(err, protocol.ErrNoTopic) {
					// A broker that has just started may not know its topics yet; the writer does not try that again.
					time.AfterFunc(retryDelay, func() { send(writer, message) })
				} else {
					message.WriterData.(func(serving.Position, error))(positionOf(message), err)
				}
			}
		},
	}
	return producer{writer, transport}, nil
}

func (p producer) Send(value []byte, done func(serving.Position, error)) {
	send(p.writer, kafka.Message{Value: value, WriterData: done})
}

func send(writer *kafka.Writer, message kafka.Message) {
	again := kafka.Message{Value: message.Value, WriterData: message.WriterData} // without a topic: the writer has it
	if err := writer.WriteMessages(context.Background(), again); err != nil {
		message.WriterData.(func(serving.Position, error))(serving.Position{}, err)
	}
}

func (p producer) Close() error {
	defer p.transport.CloseIdleConnections()
	return p.writer.Close()
}
