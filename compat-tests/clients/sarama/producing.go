package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"odradek/serving"
)

var codecs = map[string]sarama.CompressionCodec{
	"":       sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func (l *library) Produce(
	_ context.Context, topic string, records []serving.Outgoing, options serving.ProduceOptions,
) ([]serving.Position, error) {
	config := l.producerConfig(options.Idempotent)
	config.Producer.Compression = codecs[options.Compression]
	config.Producer.MaxMessageBytes = options.MaxRequestBytes
	if serving.Placed(records) {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	producer, err := sarama.NewSyncProducer(l.bootstrap, config)
	if err != nil {
		return nil, err
	}
	messages := make([]*sarama.ProducerMessage, len(records))
	for index, record := range records {
		messages[index] = outgoing(topic, record)
	}
	err = producer.SendMessages(messages)
	var failures sarama.ProducerErrors
	if errors.As(err, &failures) {
		err = failures[0].Err
	}
	if err := errors.Join(err, producer.Close()); err != nil {
		return nil, err
	}
	positions := make([]serving.Position, len(messages))
	for index, message := range messages {
		positions[index] = positionOf(message)
	}
	return positions, nil
}

func (l *library) producerConfig(idempotent bool) *sarama.Config {
	config := l.config()
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	config.Producer.Return.Successes = true
	config.Producer.Idempotent = idempotent
	if idempotent {
		config.Net.MaxOpenRequests = 1 // sarama refuses an idempotent producer with more
	}
	return config
}

func outgoing(topic string, record serving.Outgoing) *sarama.ProducerMessage {
	message := &sarama.ProducerMessage{Topic: topic}
	if record.Key != nil {
		message.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		message.Value = sarama.ByteEncoder(record.Value)
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	if record.Partition != nil {
		message.Partition = *record.Partition
	}
	if record.Timestamp != nil {
		message.Timestamp = time.UnixMilli(*record.Timestamp)
	}
	return message
}

func positionOf(message *sarama.ProducerMessage) serving.Position {
	return serving.Position{int64(message.Partition), message.Offset}
}

type producer struct {
	topic string
	async sarama.AsyncProducer
}

func (l *library) OpenProducer(topic string) (serving.Producer, error) {
	config := l.producerConfig(true)
	// sarama gives up by count, the record or the search for its leader; a broker that starts again needs some seconds.
	config.Producer.Retry.Max = 600
	config.Producer.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.Retry.Max = 600
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	async, err := sarama.NewAsyncProducer(l.bootstrap, config)
	if err != nil {
		return nil, err
	}
	opened := producer{topic, async}
	go opened.tellSuccesses()
	go opened.tellErrors()
	return opened, nil
}

func (p producer) tellSuccesses() {
	for message := range p.async.Successes() {
		message.Metadata.(func(serving.Position, error))(positionOf(message), nil)
	}
}

func (p producer) tellErrors() {
	for failed := range p.async.Errors() {
		failed.Msg.Metadata.(func(serving.Position, error))(serving.Position{}, failed.Err)
	}
}

func (p producer) Send(value []byte, done func(serving.Position, error)) {
	p.async.Input() <- &sarama.ProducerMessage{Topic: p.topic, Value: sarama.ByteEncoder(value), Metadata: done}
}

func (p producer) Close() error {
	p.async.AsyncClose() // all was acknowledged, and the two goroutines read the channels to their end
	return nil
}
