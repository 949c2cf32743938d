package serving

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

const (
	inFlight           = 20
	acknowledgeTimeout = 90 * time.Second
)

type producing struct {
	library    Library
	background *background
}

func (p *producing) produce(ctx context.Context, arguments struct {
	Topic   string     `json:"topic"`
	Records []Outgoing `json:"records"`
	ProduceOptions
}) ([]Position, error) {
	options := arguments.ProduceOptions
	options.MaxRequestBytes = cmp.Or(options.MaxRequestBytes, defaultMaxRequestBytes)
	return p.library.Produce(ctx, arguments.Topic, arguments.Records, options)
}

func (p *producing) start(_ context.Context, arguments onTopic) error {
	producer, err := p.library.OpenProducer(arguments.Topic)
	if err != nil {
		return err
	}
	p.background = &background{producer: producer, changed: make(chan struct{}, 1), finished: make(chan struct{})}
	go p.background.run()
	return nil
}

// waitAcknowledged waits until more further records are acknowledged and returns how many are in all.
func (p *producing) waitAcknowledged(_ context.Context, arguments struct {
	More int `json:"more"`
}) (int, error) {
	deadline := time.After(acknowledgeTimeout)
	count, err := p.background.progress()
	for wanted := count + arguments.More; count < wanted && err == nil; count, err = p.background.progress() {
		select {
		case <-p.background.changed:
		case <-deadline:
			return 0, fmt.Errorf("%d of %d acknowledged", count, wanted)
		}
	}
	return count, err
}

// finish stops, waits for what is in flight and returns all acknowledged records.
func (p *producing) finish(context.Context, nothing) ([]acknowledged, error) {
	background := p.background
	p.background = nil
	background.stop()
	select {
	case <-background.finished:
	case <-time.After(acknowledgeTimeout):
		return nil, fmt.Errorf("records are still in flight")
	}
	return background.records, background.err
}

// reset lets go of what the last test left running.
func (p *producing) reset() {
	if p.background != nil {
		p.background.stop()
		p.background = nil
	}
}

// acknowledged is a record in JSON as a triple.
type acknowledged struct {
	position Position
	value    Bytes
}

func (a acknowledged) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{a.position[0], a.position[1], a.value})
}

// background produces numbered values until told to stop, few at a time, and keeps what was acknowledged.
type background struct {
	producer Producer
	changed  chan struct{} // holds a token when something has happened since the last look
	finished chan struct{}

	mutex    sync.Mutex
	records  []acknowledged
	stopping bool
	err      error
}

func (b *background) run() {
	defer close(b.finished)
	slots := make(chan struct{}, inFlight)
	for number := 0; b.goesOn(); number++ {
		slots <- struct{}{}
		value := fmt.Appendf(nil, "number %d", number)
		b.producer.Send(value, func(position Position, err error) {
			b.note(acknowledged{position, value}, err)
			<-slots
		})
	}
	for range inFlight {
		slots <- struct{}{}
	}
	if err := b.producer.Close(); err != nil {
		b.note(acknowledged{}, err)
	}
}

func (b *background) goesOn() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return !b.stopping && b.err == nil
}

func (b *background) stop() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.stopping = true
}

func (b *background) note(record acknowledged, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err == nil {
		b.records = append(b.records, record)
	} else if b.err == nil {
		b.err = err
	}
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *background) progress() (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.records), b.err
}
