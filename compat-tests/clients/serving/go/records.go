package serving

import (
	"encoding/json"
	"fmt"
)

// Bytes are a key, a value or the value of a header. In JSON they are null or Latin-1 text, one character a byte.
type Bytes []byte

// MarshalJSON writes the bytes as text.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	text := make([]rune, len(b))
	for index, octet := range b {
		text[index] = rune(octet)
	}
	return json.Marshal(string(text))
}

// UnmarshalJSON reads the bytes that a text stands for.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	if text == nil {
		*b = nil
		return nil
	}
	*b = make(Bytes, 0, len(*text))
	for _, character := range *text {
		*b = append(*b, byte(character))
	}
	return nil
}

// Header is one header of a record; in JSON a pair of name and value.
type Header struct {
	Name  string
	Value Bytes
}

// MarshalJSON writes the pair.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

// UnmarshalJSON reads the pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	return unmarshalArray(data, &h.Name, &h.Value)
}

// TopicPartition names a partition; in JSON a pair of topic and index.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// MarshalJSON writes the pair.
func (tp TopicPartition) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{tp.Topic, tp.Partition})
}

// UnmarshalJSON reads the pair.
func (tp *TopicPartition) UnmarshalJSON(data []byte) error {
	return unmarshalArray(data, &tp.Topic, &tp.Partition)
}

// ConfigChange is a change of a setting; in JSON a triple. The value of "delete" is null.
type ConfigChange struct {
	Operation string // "set", "delete", "append" or "subtract"
	Key       string
	Value     *string
}

// UnmarshalJSON reads the triple.
func (c *ConfigChange) UnmarshalJSON(data []byte) error {
	return unmarshalArray(data, &c.Operation, &c.Key, &c.Value)
}

// Node is a broker of a cluster; in JSON a triple.
type Node struct {
	ID   int32
	Host string
	Port int32
}

// MarshalJSON writes the triple.
func (n Node) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{n.ID, n.Host, n.Port})
}

func unmarshalArray(data []byte, fields ...any) error {
	var texts []json.RawMessage
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	if len(texts) != len(fields) {
		return fmt.Errorf("%s has not %d elements", data, len(fields))
	}
	for index, text := range texts {
		if err := json.Unmarshal(text, fields[index]); err != nil {
			return err
		}
	}
	return nil
}

// Record is a record that was read.
type Record struct {
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"` // milliseconds
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers"`
}

// Outgoing is a record to produce. The client chooses the partition and the timestamp that are nil.
type Outgoing struct {
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers"`
	Partition *int32   `json:"partition"`
	Timestamp *int64   `json:"timestamp"` // milliseconds

	// A test may send the records that it expects to read; these fields of theirs say nothing to a producer.
	Topic  string `json:"topic"`
	Offset int64  `json:"offset"`
}

// Placed tells whether the test chose partitions: for one record of the list it then does for all.
func Placed(records []Outgoing) bool {
	return len(records) > 0 && records[0].Partition != nil
}

// Position is where a record was written: partition and offset.
type Position [2]int64

// OffsetAndTimestamp is what a search by timestamp finds.
type OffsetAndTimestamp [2]int64
