package turnstile

import (
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// A ghost is an owner of this client that the server knows and the client does not any more. A failover to a replica that
// missed its release, or a restart from an older file, brings it back; it would block the name like a crashed client's
// for as long as its lease lasts. Releasing it is always right: an owner that the client has forgotten has ended,
// and its number is never used again.

// numbered takes in the ticket that the answer to a request told, which was sent at the given instant. A new ticket with a
// smaller number than one that was known by then proves that the server went back: ghosts are sought, and the inbox may
// listen to the wrong server, too. It is certainly new if this was the only attempt: an earlier one may have got it.
func (o *owner) numbered(ticket int64, sent tenure.Instant) {
	t := o.turn
	known := t.lore()
	back := o.attempts == 1 && ticket < known.top && sent.After(known.topAt)
	if back || ticket > known.top {
		known.top, known.topAt = ticket, tenure.Lately()
	}
	if back {
		if in := t.hall.cfg.Inbox; in != nil {
			in.Renew()
		}
		t.seekGhosts()
	}
}

// stalled takes in that a poll of o found nothing granted since the poll before: somebody holds for long, or a ghost does.
// Ghosts are sought once for each last token, since looking reads the whole hash.
func (t *turnstile) stalled(seq int64) {
	if known := t.lore(); known.sought != seq {
		known.sought = seq
		t.seekGhosts()
	}
}

// seekGhosts looks for ghosts in the name's hash and releases them, in the background.
func (t *turnstile) seekGhosts() {
	h, key := t.hall, t.key
	if h.isClosing() {
		return
	}
	h.crew.Go(func() {
		now, fields, f := h.cfg.Caller.Inspect(h.ctx, key)
		if f != nil {
			return
		}
		s := state("", now.UnixMilli(), fields)
		for _, o := range s.Holders {
			h.ghostly(key, o.Client, o.Owner)
		}
		for _, o := range s.Queue {
			h.ghostly(key, o.Client, o.Owner)
		}
	})
}

// ghostly ends the owner if it is a ghost of this client.
func (h *Hall) ghostly(key, client, owner string) {
	if client != h.cfg.Client {
		return
	}
	if n, err := strconv.ParseUint(strings.TrimPrefix(owner, client+":"), 10, 64); err == nil {
		h.ghost(key, n) // it may just have been released, too: nothing to warn of
	}
}

// ghost releases the owner with that number unless the client knows it.
func (h *Hall) ghost(key string, n uint64) {
	name := h.cfg.Caller.Name(key)
	if name == "" || n == 0 || n > h.last.Load() || h.isClosing() {
		return // not ours: anybody may publish
	}
	t := h.enter(key)
	o := &owner{turn: t, req: &Request{Name: name, Key: key, Settings: &hold.Settings{Terms: tenure.Terms{Lease: hold.DefaultLease}}},
		n: n, phase: ended, known: true}
	if !h.enroll(o) {
		t.mu.Unlock()
		h.leave(t)
		return
	}
	o.undo() // forgets it in the end, which leaves the turnstile
	t.mu.Unlock()
}
