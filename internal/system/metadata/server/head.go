package server

import (
	"bytes"
	"strconv"
)

// head is what a request's first lines say, where they are such as most are: a POST of a
// command, with its length and nothing out of the way.
type head struct {
	size   int    // bytes of the lines
	length int64  // bytes of the body
	host   []byte // within the lines
	auth   []byte // too; nil for none
}

var (
	headEnd       = []byte("\r\n\r\n")
	post          = []byte("POST /")
	httpVersion   = []byte(" HTTP/1.1")
	contentLength = []byte("content-length")
	hostName      = []byte("host")
	authorization = []byte("authorization")
	connection    = []byte("connection")
	keepAlive     = []byte("keep-alive")
	harmless      = [][]byte{[]byte("user-agent"), []byte("accept"), []byte("content-type"), []byte("accept-encoding"), connection}
)

// parseHead reads the lines at the beginning of b. ok is false where they are not such as
// most are: net/http reads those, such as all of browsers, which say more of themselves. Both are zero where the lines are not all there yet.
func parseHead(b []byte, maxBody int64) (h head, ok, complete bool) {
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return h, len(b) < maxHeader, false
	}
	h = head{size: end + len(headEnd), length: -1}
	first, rest, _ := bytes.Cut(b[:end], headEnd[:2])
	if !plainRequest(first) {
		return h, false, true
	}
	hosts := 0
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, headEnd[:2])
		name, value, found := bytes.Cut(line, []byte(":"))
		value = bytes.Trim(value, " \t")
		switch {
		case !found:
			return h, false, true
		case bytes.EqualFold(name, contentLength):
			if h.length >= 0 || !digits(value) {
				return h, false, true
			}
			n, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || n > maxBody {
				return h, false, true
			}
			h.length = n
		case bytes.EqualFold(name, hostName):
			hosts++
			h.host = value
		case bytes.EqualFold(name, authorization) && h.auth == nil:
			h.auth = value
		case !known(name, value):
			return h, false, true
		}
	}
	return h, hosts == 1 && h.length >= 0, true
}

// plainRequest tells whether a request line asks for a command of the protocol.
func plainRequest(line []byte) bool {
	if !bytes.HasPrefix(line, post) || !bytes.HasSuffix(line, httpVersion) || len(line) < len(post)+len(httpVersion)-1 {
		return false
	}
	target := line[len(post)-1 : len(line)-len(httpVersion)]
	return !bytes.ContainsAny(target, " %?") && !bytes.HasPrefix(target, []byte("/v1/")) && !bytes.Equal(target, []byte("/metrics")) && printable(target)
}

// known tells whether a header changes nothing.
func known(name, value []byte) bool {
	for _, h := range harmless {
		if bytes.EqualFold(name, h) {
			return (!bytes.EqualFold(name, connection) || bytes.EqualFold(value, keepAlive)) && printable(value)
		}
	}
	return false
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
