// The driver of sarama. SARAMA_VERSION is the release of Kafka whose protocol it speaks, else sarama's default.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"

	"odradek/serving"
)

type library struct {
	bootstrap []string
	version   sarama.KafkaVersion
}

func main() {
	version := sarama.DefaultVersion
	if asked, ok := os.LookupEnv("SARAMA_VERSION"); ok {
		var err error
		if version, err = sarama.ParseKafkaVersion(asked); err != nil {
			panic(err)
		}
	}
	serving.Serve(&library{[]string{serving.Bootstrap()}, version})
}

// ErrorCode returns the code of a KError, which the errors of the admin client wrap.
func (l *library) ErrorCode(err error) *int {
	var told sarama.KError
	if !errors.As(err, &told) {
		return nil
	}
	code := int(told)
	return &code
}

func (l *library) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = l.version
	config.Metadata.RefreshFrequency = 5 * time.Second
	return config
}

// withAdmin runs a function with an admin client of its own; sarama's calls know no contexts, but timeouts.
func withAdmin[R any](ctx context.Context, l *library, run func(sarama.ClusterAdmin) (R, error)) (R, error) {
	config := l.config()
	if end, ok := ctx.Deadline(); ok {
		config.Admin.Timeout = time.Until(end)
	}
	admin, err := sarama.NewClusterAdmin(l.bootstrap, config)
	if err != nil {
		var none R
		return none, err
	}
	result, err := run(admin)
	return result, errors.Join(err, admin.Close())
}
