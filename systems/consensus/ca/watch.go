package ca

import (
	"context"
	"log/slog"
	"slices"
	"time"
)

const (
	// Soon is how long before a certificate's end its owner begins to warn.
	Soon = 14 * 24 * time.Hour
	// lookEvery is how often the files are looked at where no connection is made.
	lookEvery = 10 * time.Second
	// warnEvery is how often a warning is repeated.
	warnEvery = 24 * time.Hour
)

// Watch logs, until ctx ends, when the certificate was renewed, that it ends soon or has
// ended, and that what stands in its files is no good.
func (i Identity) Watch(ctx context.Context, log *slog.Logger) {
	w := watch{log: log.With("certificate", i.files.paths[0])}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		h, _, err := i.files.current()
		w.look(time.Now(), h.cert.Leaf.NotAfter, err)
		w.trusted(h.prints)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// trusted tells of authorities that have come or gone.
func (w *watch) trusted(prints []string) {
	if w.prints != nil && !slices.Equal(w.prints, prints) {
		w.log.Info("other authorities are trusted from now on", "authorities", prints)
	}
	w.prints = prints
}

// Phases of a certificate's life.
const (
	phaseGood = iota
	phaseSoon
	phaseExpired
)

// watch is what was told last.
type watch struct {
	log     *slog.Logger
	expires time.Time
	phase   int
	told    time.Time
	trouble string
	prints  []string
}

// look tells what is new at a time, and again what has been so for long.
func (w *watch) look(now, expires time.Time, err error) {
	if !w.expires.IsZero() && !expires.Equal(w.expires) {
		w.log.Info("the certificate was renewed", "until", expires)
	}
	w.expires = expires
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != w.trouble && trouble != "" {
		w.log.Error("the files hold no certificate to use: the one before stays", "error", err)
	}
	w.trouble = trouble
	left := expires.Sub(now.Round(0)) // by the wall clock, as TLS takes it
	phase := phaseGood
	switch {
	case left < 0:
		phase = phaseExpired
	case left < Soon:
		phase = phaseSoon
	}
	if phase == w.phase && (phase == phaseGood || now.Sub(w.told) < warnEvery) {
		return
	}
	w.phase, w.told = phase, now
	switch phase {
	case phaseSoon:
		w.log.Warn("the certificate ends soon: renew it", "until", expires, "days", int(left.Hours()/24))
	case phaseExpired:
		w.log.Error("the certificate has expired: connections are refused until it is renewed, or the clock is set right", "until", expires)
	}
}
