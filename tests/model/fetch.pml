/* fetch.pml - memory, and what each CPU may have fetched of it.
 *
 * A store is seen by loads at once, but not by instruction fetch: a CPU may go on with
 * bytes that it, or something on its way to memory, has kept. For each byte it may have
 * any value that the byte has had since the CPU last serialised, each time another one,
 * and no two bytes need be of the same age. So fetched[] is a set of values for each CPU
 * and byte, and each execution of an instruction picks one value for each of its bytes.
 *
 * Needs CPUS, BYTES and values below 4.
 */
byte text[BYTES];
byte fetched[CPUS * BYTES]; /* bit v: it may be v */

#define FETCHED(c, b) fetched[(c) * BYTES + (b)]

hidden byte i_; /* of loops inside d_steps */

/* fill - before time begins: @b has been @v for ever. Inside of a d_step. */
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

/* serialise - CPU @c forgets what it has fetched. */
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

/* fetch - one of the values that byte @b may have for CPU @c. */
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

/* IS_SURELY - whichever value it picks, it is @v. */
#define IS_SURELY(c, b, v) (FETCHED(c, b) == 1 << (v))
