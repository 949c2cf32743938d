package serving

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// Holdings are the partitions that a consumer holds, and the history of how they came and went.
type Holdings struct {
	mutex sync.Mutex
	held  map[TopicPartition]bool
	moves []Move
}

// Move is one step of the history: partitions that came, or that went. In JSON it is a pair.
type Move struct {
	What       string // "assigned" or "revoked"
	Partitions []TopicPartition
}

// MarshalJSON writes the pair, the partitions sorted.
func (m Move) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{m.What, slices.SortedFunc(slices.Values(m.Partitions), comparePartitions)})
}

// Add notes that the consumer has got a partition. What comes one after the other is one move.
func (h *Holdings) Add(partition TopicPartition) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.held == nil {
		h.held = map[TopicPartition]bool{}
	}
	h.held[partition] = true
	h.note("assigned", partition)
}

// Drop notes that the consumer has lost a partition. What goes one after the other is one move.
func (h *Holdings) Drop(partition TopicPartition) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.held, partition)
	h.note("revoked", partition)
}

// Assignment returns the partitions that the consumer holds.
func (h *Holdings) Assignment() []TopicPartition {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Collect(maps.Keys(h.held))
}

// Moves returns the history.
func (h *Holdings) Moves() []Move {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.moves)
}

func (h *Holdings) note(what string, partition TopicPartition) {
	if last := len(h.moves) - 1; last >= 0 && h.moves[last].What == what {
		h.moves[last].Partitions = append(h.moves[last].Partitions, partition)
	} else {
		h.moves = append(h.moves, Move{what, []TopicPartition{partition}})
	}
}
