package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast"
)

// serialize returns next behind the mutex of what the request is about. The request's context becomes that of the
// hold: next, and what it calls, can lock the same name again, and ends when the lock is lost.
//
// A request waits for at most wait, and no longer than its caller. Limit how many may wait, too, if callers can send any
// number of them: each holds a goroutine and a connection.
//
// Requests that must not be carried out twice need more: a lock does not remember, and a caller that got no answer sends
// again. Keep an idempotency key with what was done.
func serialize(client *holdfast.Client, wait time.Duration, name func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := false
		err := client.Mutex(name(r), holdfast.Wait(wait)).Do(r.Context(), func(ctx context.Context) error {
			began = true
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		switch {
		case err == nil || began: // next has answered. That of a lost lock has seen its context end
		case errors.Is(err, holdfast.ErrNotAcquired):
			w.Header().Set("Retry-After", "1")
			http.Error(w, "another request for it takes long", http.StatusConflict)
		case r.Context().Err() != nil: // the caller is gone
		default: // ErrUnavailable and the like
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		}
	})
}
