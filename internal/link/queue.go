package link

import "time"

// Bounds of DefaultQueue.
const (
	// leastQueue holds two TCP super-packets of 64 KiB: with less, a slow link
	// would drop the second half of every burst that a sender hands over whole.
	leastQueue = 128 << 10
	// leastQueueTime is what a router keeps for flows of unknown round trip.
	leastQueueTime = 50 * time.Millisecond
)

// DefaultQueue is the bound in bytes of the queue before a bandwidth (bit/s) on a
// link of a one-way latency: what the bandwidth carries in one round trip, so that
// a single TCP stream can fill the link, but not less than 50 ms of it nor 128 KiB.
// It is 0, no bound, where the bandwidth is 0.
//
// Source: the rule of thumb of Villamizar and Song, "High performance TCP in
// ANSNET", 1994.
func DefaultQueue(bandwidth int64, latency time.Duration) int64 {
	if bandwidth <= 0 {
		return 0
	}
	wait := max(2*latency, leastQueueTime)
	return max(leastQueue, int64(float64(bandwidth)/8*wait.Seconds()))
}

// QueueBytes is the bound that holds for q: its Queue, or the default one.
func (q Quality) QueueBytes() int64 {
	if q.Queue > 0 {
		return q.Queue
	}
	return DefaultQueue(q.Bandwidth, q.Latency)
}
