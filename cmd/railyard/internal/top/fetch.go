package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"railyard/snapshot"
)

const (
	answerLimit = 5 * time.Second
	maxAnswer   = 64 << 20 // bytes
)

// Errors of asking a node.
var (
	// ErrAddress: no place to ask.
	ErrAddress = errors.New("the address of a node's admin page is wanted, such as 127.0.0.1:7480 (Admin in its settings)")
	// ErrToken: the node wants a token, or another one.
	ErrToken = errors.New("the node asks for its token: put it into RAILYARD_TOKEN, or a file for --token-file")
	// ErrAnswer: somebody answers there, and it is no node.
	ErrAnswer = errors.New("no node answers there")
)

// Node is where a node's page is.
type Node struct {
	url    string
	token  string
	client *http.Client
}

// At reads an address: host:port, or a URL. The error wraps ErrAddress.
func At(address, token string) (*Node, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%w: %q is none", ErrAddress, address)
	}
	// The transport is its own: nothing of it is left when the program ends.
	return &Node{url: u.Scheme + "://" + u.Host + "/api/state", token: token, client: &http.Client{
		Timeout: answerLimit, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Raw asks for the state, as JSON on one line.
func (n *Node) Raw(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAddress, err)
	}
	if n.token != "" {
		r.Header.Set("Authorization", "Bearer "+n.token)
	}
	answer, err := n.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return nil, ErrToken
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: %s", ErrAnswer, answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the node's answer breaks off: %w", err)
	}
	return text, nil
}

// Look asks for the state.
func (n *Node) Look(ctx context.Context) (*snapshot.Node, error) {
	text, err := n.Raw(ctx)
	if err != nil {
		return nil, err
	}
	var s snapshot.Node
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%w: its state cannot be read: %w", ErrAnswer, err)
	}
	return &s, nil
}
