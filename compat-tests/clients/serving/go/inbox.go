package serving

import (
	"context"
	"slices"
	"sync"
)

// Inbox is where a consumer gathers its records whose library hands them to a goroutine for each partition.
type Inbox struct {
	Holdings

	mutex   sync.Mutex
	records []Record
	arrived chan struct{} // holds a token when there may be records
}

// NewInbox returns an empty inbox.
func NewInbox() *Inbox {
	return &Inbox{arrived: make(chan struct{}, 1)}
}

// Drop notes that the consumer has lost a partition, and forgets what was not taken of it.
func (i *Inbox) Drop(partition TopicPartition) {
	i.Holdings.Drop(partition)
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.records = slices.DeleteFunc(i.records, func(record Record) bool {
		return TopicPartition{record.Topic, record.Partition} == partition
	})
}

// Put adds a record of a partition that the consumer holds.
func (i *Inbox) Put(record Record) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.records = append(i.records, record)
	i.announce()
}

// Take returns at most max records, as soon as there is one, or none when the context ends first.
func (i *Inbox) Take(ctx context.Context, max int) []Record {
	for {
		if taken := i.takeNow(max); len(taken) > 0 {
			return taken
		}
		select {
		case <-i.arrived:
		case <-ctx.Done():
			return nil
		}
	}
}

func (i *Inbox) takeNow(atMost int) []Record {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	taken := slices.Clone(i.records[:min(atMost, len(i.records))])
	i.records = slices.Delete(i.records, 0, len(taken))
	if len(i.records) > 0 {
		i.announce()
	}
	return taken
}

func (i *Inbox) announce() {
	select {
	case i.arrived <- struct{}{}:
	default:
	}
}
