package main

import "skerry/internal/base/bearer"

// token is what a command sends to servers: bearer.Token, with a warning where others can read it.
func (a *app) token(file string, wish bearer.Scope, encrypted bool, addrs ...string) (string, error) {
	text, err := bearer.Token(file, wish, addrs...)
	if err == nil && text != "" && bearer.InClear(encrypted, addrs...) {
		a.log.Warn(bearer.Clear, "to", addrs)
	}
	return text, err
}
