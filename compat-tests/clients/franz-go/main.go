// The driver of franz-go: its client (kgo) and its admin client (kadm).
package main

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"odradek/serving"
)

type library struct {
	bootstrap string
	admin     *kadm.Client
}

func main() {
	bootstrap := serving.Bootstrap()
	admin, err := kadm.NewOptClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		panic(err)
	}
	serving.Serve(&library{bootstrap, admin})
}

// ErrorCode returns the code of kerr's errors.
func (l *library) ErrorCode(err error) *int {
	var told *kerr.Error
	if !errors.As(err, &told) {
		return nil
	}
	code := int(told.Code)
	return &code
}

func (l *library) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(l.bootstrap))...)
}
