package turnstile

import (
	"strconv"
	"strings"
	"time"
)

// grant is what the server pushes when it gave a waiter its tenure.
type grant struct {
	token int64
	claim time.Duration // how long the tenure lasts without renewal, from when it was given

	waiting int // tickets left in the queue
}

// message is a parsed message of the inbox: "grant <owner> <token> <now> <deadline> <waiting> <key>" or
// "revoked <owner>".
type message struct {
	revoked bool
	client  string
	n       uint64 // number of the owner
	key     string // of a grant
	grant   grant
}

func parseMessage(payload string) (message, bool) {
	fields := strings.SplitN(payload, " ", 7) // a key may contain anything
	if len(fields) < 2 {
		return message{}, false
	}
	var m message
	i := strings.LastIndexByte(fields[1], ':')
	if i < 0 {
		return message{}, false
	}
	n, err := strconv.ParseUint(fields[1][i+1:], 10, 64)
	if err != nil {
		return message{}, false
	}
	m.client, m.n = fields[1][:i], n
	switch {
	case fields[0] == "revoked" && len(fields) == 2:
		m.revoked = true
		return m, true
	case fields[0] != "grant" || len(fields) != 7:
		return message{}, false
	}
	var numbers [4]int64 // token, now, deadline, waiting
	for k := range numbers {
		v, err := strconv.ParseInt(fields[2+k], 10, 64)
		if err != nil || v < 0 {
			return message{}, false
		}
		numbers[k] = v
	}
	claim := numbers[2] - numbers[1]
	if numbers[0] == 0 || claim <= 0 || claim > (24*time.Hour).Milliseconds() {
		return message{}, false
	}
	m.key = fields[6]
	m.grant = grant{token: numbers[0], claim: time.Duration(claim) * time.Millisecond, waiting: int(numbers[3])}
	return m, true
}
