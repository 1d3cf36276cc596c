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
	// checkInterval is how often the files are checked while no connection is made.
	checkInterval = 10 * time.Second
	warnInterval  = 24 * time.Hour
)

// Watch logs, until ctx ends, that the certificate is renewed, ends soon, has ended, or has invalid files.
func (i Identity) Watch(ctx context.Context, log *slog.Logger) {
	w := watch{log: log.With("certificate", i.files.paths[0])}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		h, _, err := i.files.current()
		w.report(time.Now(), h.cert.Leaf.NotAfter, err)
		w.reportAuthorities(h.prints)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *watch) reportAuthorities(prints []string) {
	if w.prints != nil && !slices.Equal(w.prints, prints) {
		w.log.Info("other authorities are trusted from now on", "authorities", prints)
	}
	w.prints = prints
}

const (
	phaseGood = iota
	phaseSoon
	phaseExpired
)

type watch struct {
	log        *slog.Logger
	expires    time.Time
	phase      int
	lastReport time.Time
	problem    string
	prints     []string
}

func (w *watch) report(now, expires time.Time, err error) {
	if !w.expires.IsZero() && !expires.Equal(w.expires) {
		w.log.Info("the certificate was renewed", "until", expires)
	}
	w.expires = expires
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != w.problem && trouble != "" {
		w.log.Error("the files hold no certificate to use: the one before stays", "error", err)
	}
	w.problem = trouble
	left := expires.Sub(now.Round(0)) // by the wall clock, as TLS takes it
	phase := phaseGood
	switch {
	case left < 0:
		phase = phaseExpired
	case left < Soon:
		phase = phaseSoon
	}
	if phase == w.phase && (phase == phaseGood || now.Sub(w.lastReport) < warnInterval) {
		return
	}
	w.phase, w.lastReport = phase, now
	switch phase {
	case phaseSoon:
		w.log.Warn("the certificate ends soon: renew it", "until", expires, "days", int(left.Hours()/24))
	case phaseExpired:
		w.log.Error("the certificate has expired: connections are refused until it is renewed, or the clock is set right", "until", expires)
	}
}
