package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"skerry/internal/base/linger"
)

const (
	// attempts bounds how often a broken download is resumed.
	attempts = 4
	// attemptPause is multiplied by the number of the attempt.
	attemptPause = 500 * time.Millisecond
	// stallTimeout bounds the time without data.
	stallTimeout = 60 * time.Second
	// partSuffix marks an incomplete file.
	partSuffix = ".part"
)

// errPermanent is returned for a response that another attempt would not change.
var errPermanent = errors.New("refused")

// download fetches a file of a known size. It resumes from path.part.
func download(ctx context.Context, url, path string, size int64) error {
	var last error
	for n := range attempts {
		if n > 0 {
			if err := linger.For(ctx, time.Duration(n)*attemptPause); err != nil {
				return err
			}
		}
		last = downloadOnce(ctx, url, path+partSuffix, size)
		if last == nil {
			return os.Rename(path+partSuffix, path)
		}
		if ctx.Err() != nil || errors.Is(last, errPermanent) {
			return last
		}
	}
	return last
}

func downloadOnce(ctx context.Context, url, part string, size int64) (err error) {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have >= size {
		if have == size {
			return nil
		}
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("nothing came for %v", stallTimeout)) })
	defer stall.Stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusPartialContent && have > 0:
	case resp.StatusCode == http.StatusOK:
		have = 0 // the server knows no ranges
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
			return errors.Join(fmt.Errorf("%s: %s", url, resp.Status), f.Truncate(0))
		}
		return fmt.Errorf("%s: %s", url, resp.Status)
	default:
		return fmt.Errorf("%s: %w: %s", url, errPermanent, resp.Status)
	}
	if err := f.Truncate(have); err != nil {
		return err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	body := progressReader{io.LimitReader(resp.Body, size-have+1), func() { stall.Reset(stallTimeout) }}
	n, err := io.Copy(f, body)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", url, err), context.Cause(ctx))
	}
	if have+n != size {
		return fmt.Errorf("%s: %d bytes arrived, want %d: %w", url, have+n, size, io.ErrUnexpectedEOF)
	}
	return nil
}

// progressReader calls came after each read.
type progressReader struct {
	io.Reader
	came func()
}

func (p progressReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n > 0 {
		p.came()
	}
	return n, err
}

// verify compares a file with its size and checksum.
func verify(path string, p Package) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); n != p.Size || sum != p.SHA256 {
		return fmt.Errorf("%s: %w: %d bytes, SHA-256 %s; it should have %d bytes, %s", filepath.Base(path), ErrChecksum, n, sum, p.Size, p.SHA256)
	}
	return nil
}
