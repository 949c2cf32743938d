// kfake, the broker that franz-go's tests run against: one node on 127.0.0.1, with its files in a folder.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs the broker until SIGTERM.
func serve(portText, folder string) error {
	port, err := strconv.Atoi(portText)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.DataDir(folder))
	if err != nil {
		return err
	}
	<-ended
	cluster.Close()
	return nil
}
