package main

import "encoding/json"

// printJSON prints what --json asks for.
func printJSON(a *app, v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
