package memorystore

import (
	"math/bits"
	"testing"
	"unsafe"
)

// The padding is for machines of 64 bits. Elsewhere shards may share a line, which costs
// time and nothing else.
func TestShardFillsWholeCacheLines(t *testing.T) {
	if size := unsafe.Sizeof(shard{}); bits.UintSize == 64 && size%64 != 0 {
		t.Errorf("a shard is %d bytes, which is not whole cache lines of 64", size)
	}
}
