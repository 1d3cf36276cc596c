// Package bucket is an S3-compatible bucket, in which results wait until they are taken in. Every request goes
// by a link that was signed here, so that who puts a result there has that link and no key.
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

// Scheme begins the name of a bucket: s3://NAME/PREFIX.
const Scheme = "s3://"

// ErrNotFound says that an object is not there.
var ErrNotFound = errors.New("no such object")

const (
	// linkTime is how long a link serves, the longest that signatures of version 4 may.
	linkLifetime = 7 * 24 * time.Hour
	// patience bounds a request of this process but for reading what it answers.
	requestTimeout = time.Minute
)

// Bucket is a bucket and the folder in it that objects are below.
type Bucket struct {
	at     *url.URL // of the folder, without a slash at its end
	region string
	key    aws.Credentials
	client *http.Client
}

// Open returns the bucket of a name. Its key, region and endpoint are those of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL_S3, the variables that all of S3's clients know.
func Open(name string) (*Bucket, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(name, Scheme), "/")
	if bucket == "" {
		return nil, fmt.Errorf("%s names no bucket, as s3://NAME/PREFIX does", name)
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), "https://s3."+region+".amazonaws.com")
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("the endpoint of S3 is %q, which is no URL", endpoint)
	}
	b := &Bucket{at: at.JoinPath(bucket, strings.Trim(prefix, "/")), region: region, client: &http.Client{}, key: aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv(
			"AWS_SECRET_ACCESS_KEY",
		), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}}
	b.at.Path = strings.TrimSuffix(b.at.Path, "/")
	if !b.key.HasKeys() {
		return nil, advice.With(fmt.Errorf("there is no key for %s: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set", name),
			`with the aws client's logins: eval "$(aws configure export-credentials --format env)"`)
	}
	return b, nil
}

// Check finds out whether objects can be put, read and removed.
func (b *Bucket) Check(ctx context.Context) error {
	name, text := "token-"+rand.Text(), rand.Text()
	if err := b.request(ctx, http.MethodPut, name, strings.NewReader(text), nil); err != nil {
		return b.withAdvice(err)
	}
	var back strings.Builder
	err := b.request(ctx, http.MethodGet, name, nil, &back)
	if err == nil && back.String() != text {
		err = fmt.Errorf("what was put into %s is not what is read there", b.at)
	}
	return b.withAdvice(errors.Join(err, b.Remove(ctx, name)))
}

func (b *Bucket) withAdvice(err error) error {
	if err == nil {
		return nil
	}
	return advice.With(
		err,
		"the key must be allowed to put, read and remove objects there; AWS_ENDPOINT_URL_S3 and AWS_REGION say where it is",
	)
}

// Link is by what one object may be put, by anybody and for a week.
func (b *Bucket) Link(ctx context.Context, name string) (string, error) {
	return b.sign(ctx, http.MethodPut, name)
}

// Get writes an object to w.
func (b *Bucket) Get(ctx context.Context, name string, w io.Writer) error {
	return b.request(ctx, http.MethodGet, name, nil, w)
}

// Remove removes an object, if it is there.
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
		return "", fmt.Errorf("naming %s in the bucket: %w", name, err)
	}
	s := signer.NewSigner(func(o *signer.SignerOptions) { o.DisableURIPathEscaping = true }) // as S3 has it
	link, _, err := s.PresignHTTP(ctx, b.key, r, "UNSIGNED-PAYLOAD", "s3", b.region, time.Now())
	if err != nil {
		return "", fmt.Errorf("signing for %s in the bucket: %w", name, err)
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

// Request makes one request by a link, and has read read the answer where it is a good one.
func Request(ctx context.Context, client *http.Client, method, link string, body io.Reader, read func(io.Reader) error) error {
	where, _, _ := strings.Cut(link, "?") // a signature is told to nobody
	r, err := http.NewRequestWithContext(ctx, method, link, body)
	if err != nil {
		return fmt.Errorf("asking %s: the link is none", where)
	}
	answer, err := client.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("asking %s: %w", where, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound && method != http.MethodPut {
		return fmt.Errorf("%w: %s", ErrNotFound, where)
	}
	if answer.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 500)) // what it says beside is for people
		return fmt.Errorf("%s %s: %s: %s", method, where, answer.Status, strings.TrimSpace(string(said)))
	}
	if err := read(answer.Body); err != nil {
		return fmt.Errorf("reading %s: %w", where, err)
	}
	return nil
}
