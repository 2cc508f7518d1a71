package assistant

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Answered is a transport whose input ends when every request that was read from it is answered, and not before: a
// server gives up what it has not answered by then.
type Answered struct{ mcp.Transport }

// Connect implements mcp.Transport.
func (a Answered) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := a.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answered{Connection: inner, open: map[jsonrpc.ID]bool{}, done: make(chan struct{})}, nil
}

type answered struct {
	mcp.Connection
	done chan struct{} // closed when Read need not wait any more

	mu      sync.Mutex
	open    map[jsonrpc.ID]bool // requests that were read and have no answer yet
	writing int                 // answers that are on their way
	ended   bool                // nothing more is read
	closed  bool                // of done
}

func (c *answered) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	request, ok := message.(*jsonrpc.Request)
	c.change(func() {
		if ok && err == nil && request.IsCall() {
			c.open[request.ID] = true
		}
		c.ended = err != nil
	})
	if err != nil {
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	}
	return message, err
}

func (c *answered) Write(ctx context.Context, message jsonrpc.Message) error {
	response, ok := message.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, message)
	}
	// Who has the answer may use its id again at once.
	c.change(func() { delete(c.open, response.ID); c.writing++ })
	err := c.Connection.Write(ctx, message)
	c.change(func() { c.writing-- })
	return err
}

// Close is called once nothing can be written, or answered, any more.
func (c *answered) Close() error {
	c.change(func() { c.ended = true; clear(c.open) })
	return c.Connection.Close()
}

// change makes a change, and lets Read go where it was the last one.
func (c *answered) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	if c.ended && len(c.open) == 0 && c.writing == 0 && !c.closed {
		c.closed = true
		close(c.done)
	}
}
