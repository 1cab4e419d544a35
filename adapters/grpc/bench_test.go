package ratetiergrpc_test

import (
	"context"
	"math"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	ratetiergrpc "github.com/ratetier/ratetier/adapters/grpc"
	ratetier "github.com/ratetier/ratetier/core"
)

// What the limiter adds to a call is the difference between the two, without the network.
func BenchmarkCall(b *testing.B) {
	info := &grpc.UnaryServerInfo{FullMethod: unary}
	handler := func(ctx context.Context, _ any) (any, error) { return identify(ctx) }
	call := func(b *testing.B, intercept grpc.UnaryServerInterceptor) (trailer metadata.MD) {
		b.ReportAllocs()
		for b.Loop() {
			transport := &transport{}
			ctx := grpc.NewContextWithServerTransportStream(incoming(b), transport)
			if _, err := intercept(ctx, nil, info, handler); err != nil {
				b.Fatal(err)
			}
			trailer = transport.trailer
		}
		return trailer
	}
	b.Run("bare", func(b *testing.B) {
		call(b, func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, request)
		})
	})
	b.Run("limited", func(b *testing.B) {
		limiter := ample()
		trailer := call(b, ratetiergrpc.UnaryServerInterceptor(limiter, ratetiergrpc.Config{
			Identify: func(context.Context) (ratetier.Identity, error) { return ana, nil },
		}))
		if len(trailer.Get("x-ratelimit-remaining")) != 1 || used(b, limiter) != int64(b.N) {
			b.Errorf("charged %d of %d calls, trailer %v", used(b, limiter), b.N, trailer)
		}
	})
}

// What the limiter adds to each message of a stream.
func BenchmarkMessage(b *testing.B) {
	limiter := ample()
	intercept := ratetiergrpc.StreamServerInterceptor(limiter, ratetiergrpc.Config{
		Identify:    identify,
		MessageCost: func(context.Context, string, any) int64 { return 1 },
	})
	b.ReportAllocs()
	err := intercept(service{}, incomingStream{ctx: incoming(b)}, &grpc.StreamServerInfo{FullMethod: bidiStream, IsClientStream: true},
		func(_ any, stream grpc.ServerStream) error {
			message := new(wrapperspb.StringValue)
			for b.Loop() {
				if err := stream.RecvMsg(message); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil || used(b, limiter) != 1+int64(b.N) {
		b.Errorf("%v, charged %d for %d messages", err, used(b, limiter), b.N)
	}
}

// ample returns a limiter with room for everything, where nothing refills.
func ample() *ratetier.Limiter { return newLimiter(math.MaxInt32) }

var anasMetadata = metadata.Pairs("x-user", ana.User, "x-tier", ana.Tier)

// incoming returns the context of a call of ana's.
func incoming(b *testing.B) context.Context {
	return metadata.NewIncomingContext(b.Context(), anasMetadata)
}

// transport keeps the trailer, as that of grpc does.
type transport struct {
	grpc.ServerTransportStream
	trailer metadata.MD
}

func (t *transport) SetTrailer(md metadata.MD) error {
	t.trailer = metadata.Join(t.trailer, md)
	return nil
}

// incomingStream has messages without end.
type incomingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s incomingStream) Context() context.Context { return s.ctx }

func (s incomingStream) RecvMsg(any) error { return nil }
