package fault

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readReply reads one complete reply or push message, in the RESP2 or RESP3
// format, and returns its bytes unchanged. An attribute and the value that it
// annotates are one reply.
func readReply(r *bufio.Reader) ([]byte, error) { return appendValue(nil, r) }

// isPush reports whether a reply read by readReply is an out-of-band message.
func isPush(reply []byte) bool { return reply[0] == '>' }

func appendValue(buf []byte, r *bufio.Reader) ([]byte, error) {
	buf, line, err := appendLine(buf, r)
	if err != nil {
		return buf, err
	}
	if len(line) == 0 {
		return buf, fmt.Errorf("fault: empty line where a reply should begin")
	}
	switch line[0] {
	case '+', '-', ':', '_', ',', '#', '(':
		return buf, nil
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return buf, fmt.Errorf("fault: cannot read reply %q: %w", line, err)
	}
	switch line[0] {
	case '$', '!', '=':
		if n < 0 { // RESP2's null
			return buf, nil
		}
		return appendBytes(buf, r, n+2)
	case '*', '~', '>':
		return appendValues(buf, r, n)
	case '%':
		return appendValues(buf, r, 2*n)
	case '|':
		return appendValues(buf, r, 2*n+1)
	}
	return buf, fmt.Errorf("fault: unknown reply %q", line)
}

// appendValues appends n values; a negative n is RESP2's null array.
func appendValues(buf []byte, r *bufio.Reader, n int) ([]byte, error) {
	var err error
	for range max(n, 0) {
		if buf, err = appendValue(buf, r); err != nil {
			break
		}
	}
	return buf, err
}

// readCommand reads one request and returns its bytes unchanged and its words.
// An inline command is split at white space, which is all that tests need; an
// empty one has no words, and the server does not answer it.
func readCommand(r *bufio.Reader) (raw []byte, words []string, err error) {
	raw, line, err := appendLine(nil, r)
	if err != nil {
		return raw, nil, err
	}
	if len(line) == 0 || line[0] != '*' {
		return raw, strings.Fields(string(line)), nil
	}
	n, err := strconv.Atoi(string(line[1:]))
	if err != nil {
		return raw, nil, fmt.Errorf("fault: cannot read request %q: %w", line, err)
	}
	for range max(n, 0) {
		if raw, line, err = appendLine(raw, r); err != nil {
			return raw, nil, err
		}
		size, err := strconv.Atoi(strings.TrimPrefix(string(line), "$"))
		if err != nil || size < 0 {
			return raw, nil, fmt.Errorf("fault: cannot read the length of a word: %q", line)
		}
		start := len(raw)
		if raw, err = appendBytes(raw, r, size+2); err != nil {
			return raw, nil, err
		}
		words = append(words, string(raw[start:start+size]))
	}
	return raw, words, nil
}

// appendLine appends the next line to buf; line is its content without CRLF.
func appendLine(buf []byte, r *bufio.Reader) (_, line []byte, err error) {
	start := len(buf)
	for {
		part, err := r.ReadSlice('\n')
		buf = append(buf, part...)
		if err == nil {
			return buf, bytes.TrimRight(buf[start:], "\r\n"), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, nil, err
		}
	}
}

func appendBytes(buf []byte, r *bufio.Reader, n int) ([]byte, error) {
	start := len(buf)
	buf = append(buf, make([]byte, n)...)
	_, err := io.ReadFull(r, buf[start:])
	return buf, err
}
