package integration

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// All primitives are one machine, so one model does for their histories: holds with weights, whose sum never exceeds
// the capacity, and whose tokens grow from grant to grant. See Horn and Kroening, Faster linearizability checking via
// P-compositionality, 2015, for how porcupine decides.

type opKind string

const (
	opAcquire opKind = "acquire"
	opRelease opKind = "release"
	opEnd     opKind = "end" // the server forgets a hold that its client lost, or gave up waiting for
)

// op is what was asked.
type op struct {
	Kind   opKind
	Hold   int64
	Weight int64
}

// reply is what came of it.
type reply struct {
	OK, Unknown bool
	Token       int64
}

// holdings is a state of the model. It is comparable.
type holdings struct {
	ids  string // of the holders, sorted, 8 bytes each
	used int64
	last int64 // token
}

func (s holdings) holds(id int64) bool {
	for i := 0; i < len(s.ids); i += 8 {
		if s.ids[i:i+8] == packed(id) {
			return true
		}
	}
	return false
}

func packed(id int64) string { return string(binary.BigEndian.AppendUint64(nil, uint64(id))) }

func (s holdings) with(o op) holdings {
	i := 0
	for i < len(s.ids) && s.ids[i:i+8] < packed(o.Hold) {
		i += 8
	}
	s.ids = s.ids[:i] + packed(o.Hold) + s.ids[i:]
	s.used += o.Weight
	return s
}

func (s holdings) without(o op) holdings {
	for i := 0; i < len(s.ids); i += 8 {
		if s.ids[i:i+8] == packed(o.Hold) {
			s.ids = s.ids[:i] + s.ids[i+8:]
			s.used -= o.Weight
			break
		}
	}
	return s
}

// lockModel is the model of a name with that capacity.
func lockModel(capacity int64) porcupine.Model {
	seed := maphash.MakeSeed()
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{holdings{}} },
		Step: func(state, input, output any) []any {
			s, o, r := state.(holdings), input.(op), output.(reply)
			var next []any
			for _, to := range stepTo(s, o, r, capacity) {
				next = append(next, to)
			}
			return next
		},
		Equal:             func(a, b any) bool { return a == b },
		Hash:              func(a any) uint64 { return maphash.Comparable(seed, a.(holdings)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
	return model.ToModel()
}

// stepTo lists the states that an operation can lead to; none if it cannot have been answered like that.
func stepTo(s holdings, o op, r reply, capacity int64) []holdings {
	fits, mine := s.used+o.Weight <= capacity, s.holds(o.Hold)
	switch {
	case o.Kind == opEnd && mine:
		return []holdings{s.without(o)}
	case o.Kind == opEnd:
		return []holdings{s}
	case r.Unknown && o.Kind == opAcquire && fits:
		return []holdings{s, s.with(o)}
	case r.Unknown && o.Kind == opRelease && mine:
		return []holdings{s, s.without(o)}
	case r.Unknown:
		return []holdings{s}
	case o.Kind == opRelease && mine && r.OK:
		return []holdings{s.without(o)}
	case o.Kind == opAcquire && !r.OK && !fits:
		return []holdings{s}
	case o.Kind == opAcquire && r.OK && fits && r.Token > s.last:
		to := s.with(o)
		to.last = r.Token
		return []holdings{to}
	}
	return nil
}

// operations is a history as porcupine wants it. What is not known to have happened has for ever to happen.
func operations(events []event) (ops []porcupine.Operation) {
	clients := map[[2]int]int{}
	for _, e := range events {
		who := [2]int{e.Process, e.Goroutine}
		if _, ok := clients[who]; !ok {
			clients[who] = len(clients)
		}
		add := func(kind opKind, call, ret int64, r reply) {
			ops = append(ops, porcupine.Operation{
				ClientId: clients[who], Input: op{kind, e.ID, e.Weight}, Call: call, Output: r, Return: ret,
			})
		}
		switch e.Outcome {
		case busy:
			add(opAcquire, e.Called, e.Returned, reply{})
			continue
		case unknown:
			add(opAcquire, e.Called, math.MaxInt64, reply{Unknown: true})
			add(opEnd, e.Called, math.MaxInt64, reply{})
			continue
		}
		if e.Outcome == got {
			add(opAcquire, e.Called, e.Returned, reply{OK: true, Token: e.Token})
		}
		switch {
		case e.Lost > 0:
			add(opEnd, e.ServerKeeps, math.MaxInt64, reply{})
		case e.Unconfirmed:
			add(opRelease, e.Released, math.MaxInt64, reply{Unknown: true})
		case e.Released > 0:
			add(opRelease, e.Released, e.Confirmed, reply{OK: true})
		}
	}
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	return ops
}
