package main

import (
	"net/http"
	"sync"
	"time"
)

// api is the slow API. It bears limit calls at once and refuses more.
type api struct {
	limit   int
	latency time.Duration

	mu     sync.Mutex // guards what follows
	inside int
	counts counts
}

// counts are what the API has seen.
type counts struct {
	Served, Refused int
	Most            int // at once, those included that it refused
}

// ServeHTTP answers a call, slowly.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !a.enter() {
		http.Error(w, "too many calls at once", http.StatusTooManyRequests)
		return
	}
	served := true
	select {
	case <-time.After(a.latency):
	case <-r.Context().Done(): // the caller is gone
		served = false
	}
	a.leave(served) // before the answer: who gets it lets the next call in
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counts.Most = max(a.counts.Most, a.inside+1)
	if a.inside >= a.limit {
		a.counts.Refused++
		return false
	}
	a.inside++
	return true
}

func (a *api) leave(served bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inside--
	if served {
		a.counts.Served++
	}
}

func (a *api) seen() counts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counts
}
