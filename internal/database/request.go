package database

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"skerry/internal/load"
)

const (
	// maxAnswer bounds an answer over HTTP, in bytes.
	maxAnswer = 64 << 20
	// maxText is how much of an error's text is kept.
	maxText = 500
)

// DoRequest sends a request over HTTP to a server and returns the answer's body. The error is one of
// the load driver's: 404 is load.ErrNotFound, 501 load.ErrUnsupported, another 4xx certainly was not done; a 202, a 5xx or no
// answer leaves the outcome unknown. Package http sends a request again only when nothing of it was sent, or it is a GET.
func DoRequest(client *http.Client, req *http.Request, server string) ([]byte, error) {
	resp, err := client.Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return nil, load.Failed(DialErrorClass(err), server, err)
		}
		return nil, load.Unknown(ErrorClass(err), server, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, load.Unknown(ErrorClass(err), server, err)
	}
	switch code := resp.StatusCode; {
	case code == http.StatusAccepted:
		return nil, load.Unknown("http_202", server, errors.New("the server accepted the request and did not report its outcome"))
	case code == http.StatusNotFound:
		return nil, load.ErrNotFound
	case code == http.StatusNotImplemented:
		return nil, load.ErrUnsupported
	case code >= 500:
		return nil, load.Unknown("http_"+strconv.Itoa(code), server, errorText(answer))
	case code < 200 || code > 299:
		return nil, load.Failed("http_"+strconv.Itoa(code), server, errorText(answer))
	}
	return answer, nil
}

func errorText(answer []byte) error {
	return errors.New(strings.TrimSpace(string(answer[:min(len(answer), maxText)])))
}
