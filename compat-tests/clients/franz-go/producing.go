package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"odradek/serving"
)

var codecs = map[string]kgo.CompressionCodec{
	"":       kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func (l *library) Produce(
	ctx context.Context, topic string, records []serving.Outgoing, options serving.ProduceOptions,
) ([]serving.Position, error) {
	settings := []kgo.Opt{
		kgo.DefaultProduceTopic(topic),
		kgo.ProducerLinger(20 * time.Millisecond),
		kgo.ProducerBatchCompression(codecs[options.Compression]),
		kgo.ProducerBatchMaxBytes(int32(options.MaxRequestBytes)),
	}
	if serving.Placed(records) {
		settings = append(settings, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	if !options.Idempotent {
		settings = append(settings, kgo.DisableIdempotentWrite())
	}
	client, err := l.client(settings...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	sent := make([]*kgo.Record, len(records))
	for index, record := range records {
		sent[index] = outgoing(record)
	}
	if err := client.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	positions := make([]serving.Position, len(sent))
	for index, record := range sent {
		positions[index] = positionOf(record)
	}
	return positions, nil
}

func outgoing(record serving.Outgoing) *kgo.Record {
	sent := &kgo.Record{Key: record.Key, Value: record.Value}
	for _, header := range record.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	if record.Partition != nil {
		sent.Partition = *record.Partition
	}
	if record.Timestamp != nil {
		sent.Timestamp = time.UnixMilli(*record.Timestamp)
	}
	return sent
}

func positionOf(record *kgo.Record) serving.Position {
	return serving.Position{int64(record.Partition), record.Offset}
}

type producer struct{ client *kgo.Client }

func (l *library) OpenProducer(topic string) (serving.Producer, error) {
	client, err := l.client(kgo.DefaultProduceTopic(topic))
	return producer{client}, err
}

func (p producer) Send(value []byte, done func(serving.Position, error)) {
	p.client.Produce(context.Background(), &kgo.Record{Value: value}, func(record *kgo.Record, err error) {
		done(positionOf(record), err)
	})
}

func (p producer) Close() error {
	p.client.Close()
	return nil
}
