package explorer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Server is a Redis that has one hash and the few commands that the scripts use. Its clock stands until
// it is set.
type Server struct {
	Fields    map[string]string
	ExpiresAt int64 // in ms of the server's clock; 0: never
	Micros    int64 // the server's clock

	// MemoryFull makes the server refuse what takes memory, until a script has made its first write: Redis
	// lets the rest of a script through.
	MemoryFull bool

	Published []Message // by the script that ran last

	wrote bool // the running script has written
}

// Message is one message published to a channel.
type Message struct{ Channel, Text string }

var errMemoryFull = errors.New("OOM command not allowed when used memory > 'maxmemory'.") //nolint:revive,staticcheck // what Redis says

func (s *Server) now() int64 { return s.Micros / 1000 }

// begin forgets what the previous script did.
func (s *Server) begin() {
	s.Published, s.wrote = nil, false
	if s.Fields == nil {
		s.Fields = map[string]string{}
	}
}

// do runs one command. Replies are int64, string, nil or []any of them.
func (s *Server) do(args []string) (any, error) {
	if err := s.admit(args[0]); err != nil {
		return nil, err
	}
	switch args[0] {
	case "TIME":
		return []any{strconv.FormatInt(s.Micros/1e6, 10), strconv.FormatInt(s.Micros%1e6, 10)}, nil
	case "EXISTS":
		return boolean(len(s.Fields) > 0), nil
	case "HLEN":
		return int64(len(s.Fields)), nil
	case "HGET":
		return s.get(args[2]), nil
	case "HMGET":
		values := make([]any, 0, len(args)-2)
		for _, field := range args[2:] {
			values = append(values, s.get(field))
		}
		return values, nil
	case "HKEYS", "HGETALL":
		return s.list(args[0] == "HGETALL"), nil
	case "HSET":
		return s.set(args[2:])
	case "HDEL":
		return s.remove(args[2:]), nil
	case "DEL":
		existed := len(s.Fields) > 0
		s.clear()
		return boolean(existed), nil
	case "PTTL":
		return s.ttl(), nil
	case "PEXPIRE":
		return s.expire(args[2], len(args) > 3 && args[3] == "GT")
	case "PUBLISH":
		s.Published = append(s.Published, Message{args[1], args[2]})
		return int64(0), nil
	}
	return nil, fmt.Errorf("ERR the explorer's server does not know %q", args[0])
}

// admit is Redis's check of the memory: only HSET takes any.
func (s *Server) admit(command string) error {
	if command == "HSET" && s.MemoryFull && !s.wrote {
		return errMemoryFull
	}
	switch command {
	case "HSET", "HDEL", "DEL", "PEXPIRE":
		s.wrote = true
	}
	return nil
}

func boolean(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (s *Server) get(field string) any {
	if value, ok := s.Fields[field]; ok {
		return value
	}
	return nil
}

func (s *Server) list(withValues bool) []any {
	var all []any
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		all = append(all, field)
		if withValues {
			all = append(all, s.Fields[field])
		}
	}
	return all
}

func (s *Server) set(pairs []string) (any, error) {
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return nil, errors.New("ERR wrong number of arguments for 'hset' command")
	}
	added := int64(0)
	for i := 0; i < len(pairs); i += 2 {
		if _, ok := s.Fields[pairs[i]]; !ok {
			added++
		}
		s.Fields[pairs[i]] = pairs[i+1]
	}
	return added, nil
}

func (s *Server) remove(fields []string) int64 {
	removed := int64(0)
	for _, field := range fields {
		if _, ok := s.Fields[field]; ok {
			removed++
			delete(s.Fields, field)
		}
	}
	if len(s.Fields) == 0 {
		s.clear()
	}
	return removed
}

func (s *Server) clear() {
	s.Fields = map[string]string{}
	s.ExpiresAt = 0
}

func (s *Server) ttl() int64 {
	switch {
	case len(s.Fields) == 0:
		return -2
	case s.ExpiresAt == 0:
		return -1
	}
	return s.ExpiresAt - s.now()
}

// expire is PEXPIRE, with GT if only a later end is to count; none is later than any.
func (s *Server) expire(millis string, later bool) (any, error) {
	ttl, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return nil, errors.New("ERR value is not an integer or out of range")
	}
	if len(s.Fields) == 0 || later && (s.ExpiresAt == 0 || s.ExpiresAt >= s.now()+ttl) {
		return int64(0), nil
	}
	if ttl <= 0 {
		s.clear()
	} else {
		s.ExpiresAt = s.now() + ttl
	}
	return int64(1), nil
}
