package turnstile

import (
	"testing"
	"time"
)

func TestMessagesOfTheInbox(t *testing.T) {
	m, ok := parseMessage("grant AbC@web-1:42 1796071920277319 1796071920277 1796071923277 3 holdfast:mutex:a b")
	if !ok || m.revoked || m.client != "AbC@web-1" || m.n != 42 || m.grant.token != 1796071920277319 || m.grant.claim != 3*time.Second || m.key != "holdfast:mutex:a b" {
		t.Errorf("a grant is read as %+v, %v", m, ok)
	}
	m, ok = parseMessage("revoked AbC:7")
	if !ok || !m.revoked || m.client != "AbC" || m.n != 7 {
		t.Errorf("a revocation is read as %+v, %v", m, ok)
	}
	for _, junk := range []string{
		"", " ", "grant", "grant c:1", "grant c:1 1 2 3", "grant c:1 1 2 3 4", "grant c 1 2 3 4 k", "grant c:x 1 2 3 4 k",
		"grant c:1 -1 2 3 4 k", "grant c:1 0 2 3 4 k", "grant c:1 1 3 3 4 k", "grant c:1 1 3 2 4 k", "grant c:1 1 0 99999999999 4 k",
		"grant c:1 1e3 2 3 4 k", "revoked", "revoked c", "revoked c:1 x", "hello world", "GRANT c:1 1 2 3 4 k",
	} {
		if m, ok := parseMessage(junk); ok {
			t.Errorf("%q is read as %+v", junk, m)
		}
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("grant AbC@web-1:42 1796071920277319 1796071920277 1796071923277 3 holdfast:mutex:a")
	f.Add("revoked AbC:7")
	f.Fuzz(func(t *testing.T, payload string) {
		if m, ok := parseMessage(payload); ok && !m.revoked && (m.grant.token <= 0 || m.grant.claim <= 0 || m.grant.claim > 24*time.Hour) {
			t.Errorf("%q is read as %+v", payload, m)
		}
	})
}
