package purged

import (
	"encoding/binary"
	"math/bits"
)

// sipHash is SipHash-2-4 with a result of 128 bits, as ClickHouse's sipHash128ReferenceKeyed: a keyed hash for short
// texts. The halves of the key are those of its 16 bytes, little-endian.
func sipHash(k0, k1 uint64, text []byte) (hash [16]byte) {
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee, k0 ^ 0x6c7967656e657261,
		k1 ^ 0x7465646279746573}
	last := uint64(len(text)) << 56
	for ; len(text) >= 8; text = text[8:] {
		absorb(&v, binary.LittleEndian.Uint64(text))
	}
	for i, b := range text {
		last |= uint64(b) << (8 * i)
	}
	absorb(&v, last)
	v[2] ^= 0xee
	rounds(&v, 4)
	binary.LittleEndian.PutUint64(hash[:8], v[0]^v[1]^v[2]^v[3])
	v[1] ^= 0xdd
	rounds(&v, 4)
	binary.LittleEndian.PutUint64(hash[8:], v[0]^v[1]^v[2]^v[3])
	return hash
}

func absorb(v *[4]uint64, word uint64) {
	v[3] ^= word
	rounds(v, 2)
	v[0] ^= word
}

func rounds(v *[4]uint64, n int) {
	for range n {
		v[0] += v[1]
		v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[3]
		v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
		v[0] += v[3]
		v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
		v[2] += v[1]
		v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
}
