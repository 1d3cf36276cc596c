package tinc

import "skerry/internal/lab/overlay"

// About is what the laboratory and its documentation know of tinc.
var About = overlay.About{
	Name: Name, Recipe: Recipe, Options: func() overlay.Options { return new(Options) },
	Intervals: []overlay.Interval{{Key: "ping_interval", Usage: "tinc's"}, {Key: "ping_timeout", Usage: "tinc's"}},
	Docs: overlay.Docs{
		For:     "for that mesh VPN",
		Tunes:   "tunes tincd. It counts in whole seconds.",
		Takes:   "over the first of the peer's addresses that answers, the shortest link first; through others where none does",
		Notices: "an unanswered ping",
	},
}
