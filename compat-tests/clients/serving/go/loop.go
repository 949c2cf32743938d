// Package serving is the loop of a driver in Go: JSON requests on stdin, one reply a line on stdout.
//
// It knows the operations and their shapes, which are those of all drivers (../serving.py), and does what takes no
// library: waiting for records and assignments, and producing in the background. A driver implements Library.
package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Below the time that a test waits for most calls, so that a test is told what the library waited for.
const operationTimeout = 25 * time.Second

type request struct {
	ID        int             `json:"id"`
	Operation string          `json:"operation"`
	Arguments json.RawMessage `json:"arguments"`
}

type reply struct {
	ID     int      `json:"id"`
	Result any      `json:"result"`
	Error  *failure `json:"error,omitempty"`
}

type failure struct {
	Kind    string `json:"kind"`
	Code    *int   `json:"code"`
	Message string `json:"message"`
}

// Bootstrap returns the broker's address, which is the last argument of every driver.
func Bootstrap() string {
	return os.Args[len(os.Args)-1]
}

// Serve answers requests until stdin ends. What the library prints goes to stderr.
func Serve(library Library) {
	replies := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr
	requests := json.NewDecoder(os.Stdin)
	operations := operationsOf(library)
	for {
		var asked request
		if err := requests.Decode(&asked); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		answer := reply{ID: asked.ID}
		result, err := run(operations, asked)
		if err != nil {
			fmt.Fprintln(os.Stderr, asked.Operation, err)
			answer.Error = &failure{Kind: fmt.Sprintf("%T", err), Code: library.ErrorCode(err), Message: err.Error()}
		} else {
			answer.Result = result
		}
		if err := replies.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func run(operations map[string]operation, asked request) (any, error) {
	chosen, ok := operations[asked.Operation]
	if !ok {
		return nil, fmt.Errorf("%s is no operation", asked.Operation)
	}
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	defer cancel()
	return chosen(ctx, asked.Arguments)
}

type operation func(ctx context.Context, arguments json.RawMessage) (any, error)

// answering makes an operation of a function whose arguments are the fields of A; it refuses unknown arguments.
func answering[A, R any](function func(ctx context.Context, arguments A) (R, error)) operation {
	return func(ctx context.Context, text json.RawMessage) (any, error) {
		var arguments A
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&arguments); err != nil {
			return nil, err
		}
		return function(ctx, arguments)
	}
}

// doing is answering for a function that returns nothing.
func doing[A any](function func(ctx context.Context, arguments A) error) operation {
	return answering(func(ctx context.Context, arguments A) (any, error) {
		return nil, function(ctx, arguments)
	})
}
