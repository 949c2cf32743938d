// The driver of kafka-go: its Writer, its Reader, its ConsumerGroup and its Client.
package main

import (
	"errors"
	"time"

	"github.com/segmentio/kafka-go"

	"odradek/serving"
)

const requestTimeout = 20 * time.Second

type library struct{ bootstrap string }

func main() {
	serving.Serve(&library{serving.Bootstrap()})
}

// ErrorCode returns the code of an Error, which the errors of the client wrap.
func (l *library) ErrorCode(err error) *int {
	var told kafka.Error
	if !errors.As(err, &told) {
		return nil
	}
	code := int(told)
	return &code
}

// client returns a client and what closes it. Each use has its own, since a transport keeps metadata for seconds.
func (l *library) client() (*kafka.Client, func()) {
	transport := &kafka.Transport{}
	client := &kafka.Client{Addr: kafka.TCP(l.bootstrap), Timeout: requestTimeout, Transport: transport}
	return client, transport.CloseIdleConnections
}
