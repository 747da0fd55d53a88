/* fetch.pml - models memory, and the values that each CPU may have fetched from it.
 *
 * A load sees a store at once, but an instruction fetch may not: a CPU may go on with old
 * bytes that are kept in the CPU or on its way to memory. For each byte the CPU may fetch
 * any value that the byte has had since the CPU last serialised. Each fetch may get
 * another one of these values, and two bytes may have values of different times. So
 * fetched[] has a set of values for each CPU and byte. An execution of an instruction
 * picks one value for each of its bytes.
 *
 * The including file defines CPUS and BYTES. Values must be below 4.
 */
byte text[BYTES];
byte fetched[CPUS * BYTES]; /* bit v: the CPU may fetch the value v */

#define FETCHED(c, b) fetched[(c) * BYTES + (b)]

hidden byte i_; /* the counter of loops inside d_steps */

/* fill - set the first value of byte @b to @v, for memory and all CPUs. Inside a d_step.
 */
inline fill(b, v)
{
    text[b] = v;
    i_ = 0;
    do
    :: i_ < CPUS -> FETCHED(i_, b) = 1 << (v); i_++
    :: else -> break
    od;
    i_ = 0
}

inline store(b, v)
{
    d_step {
        printf("byte %d becomes %d\n", b, v);
        text[b] = v;
        i_ = 0;
        do
        :: i_ < CPUS -> FETCHED(i_, b) = FETCHED(i_, b) | (1 << (v)); i_++
        :: else -> break
        od;
        i_ = 0
    }
}

/* serialise - let CPU @c forget what it has fetched: from now on it fetches from memory.
 */
inline serialise(c)
{
    d_step {
        printf("CPU %d serialises\n", c);
        i_ = 0;
        do
        :: i_ < BYTES -> FETCHED(c, i_) = 1 << text[i_]; i_++
        :: else -> break
        od;
        i_ = 0
    }
}

/* fetch - set @v to one of the values that CPU @c may fetch for byte @b. */
#define MAY_BE(c, b, v) (FETCHED(c, b) & (1 << (v)))
inline fetch(c, b, v)
{
    if
    :: MAY_BE(c, b, 0) -> v = 0
    :: MAY_BE(c, b, 1) -> v = 1
    :: MAY_BE(c, b, 2) -> v = 2
    :: MAY_BE(c, b, 3) -> v = 3
    fi
}

/* IS_SURELY - can CPU @c fetch no other value than @v for byte @b? */
#define IS_SURELY(c, b, v) (FETCHED(c, b) == 1 << (v))
