package rpc

import (
	"net/http"
	"time"
)

const (
	// silence is how long nothing may come before the other side is asked whether it lives, answer
	// how long that may take: an agent whose controller is out of reach for longer ends.
	silence = 20 * time.Second
	answer  = 40 * time.Second
	// streams bounds the calls at a time: a process that runs is one.
	streams = 100_000
	// A stream may have perStream bytes under way, all together as much as they like: what
	// nobody reads of one must not hold up the others.
	perStream = 1 << 20
	perConn   = 1 << 30
)

// HTTP2 is how both sides have the protocol.
func HTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: streams, StrictMaxConcurrentRequests: true,
		MaxReceiveBufferPerStream: perStream, MaxReceiveBufferPerConnection: perConn,
		SendPingTimeout: silence, PingTimeout: answer,
	}
}

// Protocols is HTTP/2 without TLS: what carries it keeps others out.
func Protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// Broken is the trailer that tells the Failure that a stream of an answer ended with, in JSON as a
// URL's path has it.
const Broken = "Skerry-Broken"
