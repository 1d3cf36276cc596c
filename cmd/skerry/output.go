package main

import (
	"encoding/json"
	"io"
)

func printJSON(a *app, v any) error { return encodeJSON(a.out, v) }

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
