package server

import "skerry/internal/metadata/load"

// LoadOf is what a server has to do, from the status of each of its replicas, which count
// what they answer themselves.
func LoadOf(replicas []Status) load.Load {
	var parts []load.Load
	for _, r := range replicas {
		if r.Load != nil {
			parts = append(parts, *r.Load)
		}
	}
	return load.Sum(parts)
}
