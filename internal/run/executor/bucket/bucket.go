// Package bucket accesses an S3-compatible bucket through signed links, so that workers can store results
// without a key.
package bucket

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"skerry/internal/base/advice"
)

// Scheme is the prefix of a bucket's name: s3://NAME/PREFIX.
const Scheme = "s3://"

var ErrNotFound = errors.New("no such object")

const (
	// linkLifetime is the longest that version 4 signatures allow.
	linkLifetime = 7 * 24 * time.Hour
	// requestTimeout bounds a request until its response begins.
	requestTimeout = time.Minute
)

// Bucket is a bucket and the prefix of its objects.
type Bucket struct {
	at     *url.URL // of the prefix, without a trailing slash
	region string
	key    aws.Credentials
	client *http.Client
}

// Open returns the bucket with a name. It reads key, region and endpoint from the variables that all S3
// clients use: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and
// AWS_ENDPOINT_URL_S3.
func Open(name string) (*Bucket, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(name, Scheme), "/")
	if bucket == "" {
		return nil, fmt.Errorf("bucket %q: want s3://NAME/PREFIX", name)
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3."+region+".amazonaws.com")
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("S3 endpoint %q is not a URL", endpoint)
	}
	b := &Bucket{at: at.JoinPath(bucket, strings.Trim(prefix, "/")), region: region, client: &http.Client{}, key: aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv(
			"AWS_SECRET_ACCESS_KEY",
		), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}}
	b.at.Path = strings.TrimSuffix(b.at.Path, "/")
	if !b.key.HasKeys() {
		return nil, advice.With(fmt.Errorf("no key for %s: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set", name),
			`export the login of the aws client: eval "$(aws configure export-credentials --format env)"`)
	}
	return b, nil
}

// Check verifies that objects can be written, read and removed.
func (b *Bucket) Check(ctx context.Context) error {
	name, text := "token-"+rand.Text(), rand.Text()
	if err := b.request(ctx, http.MethodPut, name, strings.NewReader(text), nil); err != nil {
		return b.withAdvice(err)
	}
	var back strings.Builder
	err := b.request(ctx, http.MethodGet, name, nil, &back)
	if err == nil && back.String() != text {
		err = fmt.Errorf("bucket %s: an object differs from what was written", b.at)
	}
	return b.withAdvice(errors.Join(err, b.Remove(ctx, name)))
}

func (b *Bucket) withAdvice(err error) error {
	if err == nil {
		return nil
	}
	return advice.With(err, "allow the key to write, read and remove objects; check AWS_ENDPOINT_URL_S3 and AWS_REGION")
}

// Link returns a link with which anyone can write one object, for a week.
func (b *Bucket) Link(ctx context.Context, name string) (string, error) {
	return b.sign(ctx, http.MethodPut, name)
}

func (b *Bucket) Get(ctx context.Context, name string, w io.Writer) error {
	return b.request(ctx, http.MethodGet, name, nil, w)
}

// Remove removes an object; a missing object is not an error.
func (b *Bucket) Remove(ctx context.Context, name string) error {
	if err := b.request(ctx, http.MethodDelete, name, nil, nil); !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

func (b *Bucket) sign(ctx context.Context, method, name string) (string, error) {
	u := b.at.JoinPath(name)
	u.RawQuery = url.Values{"X-Amz-Expires": {fmt.Sprint(int(linkLifetime.Seconds()))}}.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("build request for %s: %w", name, err)
	}
	s := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true }) // S3 escapes once
	link, _, err := s.PresignHTTP(ctx, b.key, r, "UNSIGNED-PAYLOAD", "s3", b.region, time.Now())
	if err != nil {
		return "", fmt.Errorf("sign request for %s: %w", name, err)
	}
	return link, nil
}

func (b *Bucket) request(ctx context.Context, method, name string, body io.Reader, into io.Writer) error {
	link, err := b.sign(ctx, method, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(requestTimeout, cancel)
	defer late.Stop()
	return Request(ctx, b.client, method, link, body, func(answer io.Reader) error {
		late.Stop()
		if into == nil {
			return nil
		}
		_, err := io.Copy(into, answer)
		return err
	})
}

// Request sends one request to a link and calls read with the body of a successful response. Errors do not
// contain the signature.
func Request(ctx context.Context, client *http.Client, method, link string, body io.Reader, read func(io.Reader) error) error {
	where, _, _ := strings.Cut(link, "?") // the signature is secret
	r, err := http.NewRequestWithContext(ctx, method, link, body)
	if err != nil {
		return fmt.Errorf("request %s: invalid link", where)
	}
	answer, err := client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("request %s: %w", where, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound && method != http.MethodPut {
		return fmt.Errorf("%w: %s", ErrNotFound, where)
	}
	if answer.StatusCode/100 != 2 {
		detail, _ := io.ReadAll(io.LimitReader(answer.Body, 500)) // details for the message
		return fmt.Errorf("%s %s: %s: %s", method, where, answer.Status, strings.TrimSpace(string(detail)))
	}
	if err := read(answer.Body); err != nil {
		return fmt.Errorf("read %s: %w", where, err)
	}
	return nil
}
