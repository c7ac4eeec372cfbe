/* The loops of searches in memory; kernels.py says what each function takes and returns, and has the same in numpy. */

#define Py_LIMITED_API 0x030b0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define X86 1
#include <immintrin.h>
#endif

/* What the arguments of a call hold: at most so many buffers, given back together. */
#define MOST 7

typedef struct {
    Py_buffer views[MOST];
    int held;
} Arguments;

static void give_back(Arguments *arguments) {
    while (arguments->held > 0) PyBuffer_Release(&arguments->views[--arguments->held]);
}

/* The next buffer, or NULL without an error for None. `elements`: how many items of `size` bytes it has. */
static void *take(Arguments *arguments, PyObject *from, int writable, Py_ssize_t size, Py_ssize_t *elements) {
    *elements = 0;
    if (from == Py_None) return NULL;
    Py_buffer *view = &arguments->views[arguments->held];
    if (PyObject_GetBuffer(from, view, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) < 0) return NULL;
    arguments->held++;
    *elements = view->len / size;
    return view->buf;
}

static int broken(void) { return PyErr_Occurred() != NULL; }

static PyObject *fail(Arguments *arguments, const char *message) {
    give_back(arguments);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

/* Bits in which codes differ from a query's. Codes lie word after word: the first word of every row, then the second. */

static int bits(uint64_t word) {
#if defined(__GNUC__)
    return __builtin_popcountll(word);
#else
    word -= (word >> 1) & 0x5555555555555555ULL;
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
    return (int)((((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56);
#endif
}

/* So many rows at a time, whose sums stay in the nearest cache. */
#define BLOCK 1024

typedef void (*Distances)(const uint64_t *, const uint64_t *, Py_ssize_t, Py_ssize_t, uint16_t *);

#define DISTANCES(BITS)                                                                                         \
    for (Py_ssize_t first = 0; first < rows; first += BLOCK) {                                                  \
        uint64_t sums[BLOCK] = {0};                                                                             \
        Py_ssize_t size = rows - first < BLOCK ? rows - first : BLOCK;                                          \
        for (Py_ssize_t word = 0; word < words; word++) {                                                       \
            const uint64_t *own = codes + word * rows + first, asked = query[word];                             \
            for (Py_ssize_t row = 0; row < size; row++) sums[row] += (uint64_t)BITS(own[row] ^ asked);          \
        }                                                                                                       \
        for (Py_ssize_t row = 0; row < size; row++) distances[first + row] = (uint16_t)sums[row];               \
    }

static void distances_anywhere(const uint64_t *codes, const uint64_t *query, Py_ssize_t rows, Py_ssize_t words,
                               uint16_t *distances) { DISTANCES(bits) }

#ifdef X86
__attribute__((target("popcnt")))
static void distances_popcnt(const uint64_t *codes, const uint64_t *query, Py_ssize_t rows, Py_ssize_t words,
                             uint16_t *distances) { DISTANCES(__builtin_popcountll) }

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq")))
static void distances_avx512(const uint64_t *codes, const uint64_t *query, Py_ssize_t rows, Py_ssize_t words,
                             uint16_t *distances) { DISTANCES(__builtin_popcountll) }

/* Four rows at a time: the bits of each byte by a table of sixteen, bytes added up over at most 31 words. */
__attribute__((target("avx2,popcnt")))
static void distances_avx2(const uint64_t *codes, const uint64_t *query, Py_ssize_t rows, Py_ssize_t words,
                           uint16_t *distances) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                                           0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
    Py_ssize_t row = 0;
    for (; row + 4 <= rows; row += 4) {
        __m256i total = zero;
        for (Py_ssize_t begin = 0; begin < words; begin += 31) {
            __m256i bytes = zero;
            for (Py_ssize_t word = begin; word < words && word < begin + 31; word++) {
                __m256i differ = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(codes + word * rows + row)),
                                                  _mm256_set1_epi64x((long long)query[word]));
                bytes = _mm256_add_epi8(bytes, _mm256_add_epi8(
                    _mm256_shuffle_epi8(table, _mm256_and_si256(differ, low)),
                    _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(differ, 4), low))));
            }
            total = _mm256_add_epi64(total, _mm256_sad_epu8(bytes, zero));
        }
        uint64_t sums[4];
        _mm256_storeu_si256((__m256i *)sums, total);
        for (int lane = 0; lane < 4; lane++) distances[row + lane] = (uint16_t)sums[lane];
    }
    for (; row < rows; row++) {
        int distance = 0;
        for (Py_ssize_t word = 0; word < words; word++) distance += __builtin_popcountll(codes[word * rows + row] ^ query[word]);
        distances[row] = (uint16_t)distance;
    }
}
#endif

static Distances distances_here(void) {
#ifdef X86
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq"))
        return distances_avx512;
    if (__builtin_cpu_supports("avx2")) return distances_avx2;
    if (__builtin_cpu_supports("popcnt")) return distances_popcnt;
#endif
    return distances_anywhere;
}

static PyObject *nearest_codes(PyObject *self, PyObject *given) {
    PyObject *from[4];
    Py_ssize_t wanted, items, words, masked, room;
    if (!PyArg_ParseTuple(given, "OOOnO", &from[0], &from[1], &from[2], &wanted, &from[3])) return NULL;
    Arguments arguments = {.held = 0};
    const uint64_t *codes = take(&arguments, from[0], 0, 8, &items);
    const uint64_t *query = take(&arguments, from[1], 0, 8, &words);
    const uint8_t *mask = take(&arguments, from[2], 0, 1, &masked);
    int32_t *found = take(&arguments, from[3], 1, 4, &room);
    if (broken() || !codes || !query || !found || !words || words > 1000 || wanted < 1 || room < wanted || items % words || (mask && masked != items / words))
        return fail(&arguments, "nearest_codes: the arrays do not fit together");
    Py_ssize_t rows = items / words, count = 0, most = 64 * words + 1;
    /* Four counts of each distance: neighbours that are equally far would wait for one another. */
    uint32_t *counted = calloc((size_t)(4 * most), sizeof(uint32_t));
    uint16_t *distances = malloc((size_t)(rows ? rows : 1) * sizeof(uint16_t));
    if (!counted || !distances) {
        free(counted); free(distances); give_back(&arguments);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    distances_here()(codes, query, rows, words, distances);
    for (Py_ssize_t row = 0; row < rows; row++) {
        if (mask && !mask[row]) distances[row] = UINT16_MAX;
        else counted[(row & 3) * most + distances[row]]++;
    }
    /* All that are nearer than the furthest of those wanted, and of those at its distance as many as there is room for. */
    Py_ssize_t furthest = 0, nearer = 0;
    for (; furthest < most - 1; furthest++) {
        Py_ssize_t here = 0;
        for (int part = 0; part < 4; part++) here += counted[part * most + furthest];
        if (nearer + here >= wanted) break;
        nearer += here;
    }
    Py_ssize_t tied = room - nearer;
    for (Py_ssize_t row = 0; row < rows && count < room; row++) {
        if (distances[row] < furthest || (distances[row] == furthest && tied-- > 0)) found[count++] = (int32_t)row;
    }
    Py_END_ALLOW_THREADS
    free(counted); free(distances); give_back(&arguments);
    return PyLong_FromSsize_t(count);
}

/* Inner products with rows of half-precision vectors. */

static float widened(uint16_t half) {
    union { uint32_t bits; float value; } wide = {(uint32_t)(half & 0x7fff) << 13}, scale = {(uint32_t)(254 - 15) << 23};
    wide.value *= scale.value;
    if ((half & 0x7c00) == 0x7c00) wide.bits |= 0x7f800000u;
    wide.bits |= (uint32_t)(half & 0x8000) << 16;
    return wide.value;
}

static float product_anywhere(const uint16_t *vector, const float *query, Py_ssize_t dimension) {
    float sums[8] = {0};
    Py_ssize_t at = 0;
    for (; at + 8 <= dimension; at += 8)
        for (int lane = 0; lane < 8; lane++) sums[lane] += widened(vector[at + lane]) * query[at + lane];
    float sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
    for (; at < dimension; at++) sum += widened(vector[at]) * query[at];
    return sum;
}

#ifdef X86
__attribute__((target("avx2,fma,f16c")))
static float product_f16c(const uint16_t *vector, const float *query, Py_ssize_t dimension) {
    __m256 first = _mm256_setzero_ps(), second = _mm256_setzero_ps();
    Py_ssize_t at = 0;
    for (; at + 16 <= dimension; at += 16) {
        first = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(vector + at))),
                                _mm256_loadu_ps(query + at), first);
        second = _mm256_fmadd_ps(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(vector + at + 8))),
                                 _mm256_loadu_ps(query + at + 8), second);
    }
    float sums[8], sum = 0;
    _mm256_storeu_ps(sums, _mm256_add_ps(first, second));
    for (int lane = 0; lane < 8; lane++) sum += sums[lane];
    for (; at < dimension; at++) sum += widened(vector[at]) * query[at];
    return sum;
}
#endif

static PyObject *products(PyObject *self, PyObject *given) {
    PyObject *from[4];
    Py_ssize_t items, dimension, chosen, room;
    if (!PyArg_ParseTuple(given, "OOOO", &from[0], &from[1], &from[2], &from[3])) return NULL;
    Arguments arguments = {.held = 0};
    const uint16_t *vectors = take(&arguments, from[0], 0, 2, &items);
    const float *query = take(&arguments, from[1], 0, 4, &dimension);
    const int32_t *rows = take(&arguments, from[2], 0, 4, &chosen);
    float *found = take(&arguments, from[3], 1, 4, &room);
    if (!vectors || !query || !rows || !found || !dimension || items % dimension || room < chosen)
        return fail(&arguments, "products: the arrays do not fit together");
    Py_ssize_t most = items / dimension;
    float (*product)(const uint16_t *, const float *, Py_ssize_t) = product_anywhere;
#ifdef X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        product = product_f16c;
#endif
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t place = 0; place < chosen; place++) {
#if defined(__GNUC__)
        if (place + 4 < chosen && rows[place + 4] >= 0 && rows[place + 4] < most) {
            const char *next = (const char *)(vectors + (Py_ssize_t)rows[place + 4] * dimension);
            for (Py_ssize_t line = 0; line < 2 * dimension; line += 64) __builtin_prefetch(next + line);
        }
#endif
        found[place] = rows[place] < 0 || rows[place] >= most
            ? 0.0f : product(vectors + (Py_ssize_t)rows[place] * dimension, query, dimension);
    }
    Py_END_ALLOW_THREADS
    give_back(&arguments);
    Py_RETURN_NONE;
}

/* BM25 by postings: for each word, the rows that hold it and how often. */

static PyObject *add_words(PyObject *self, PyObject *given) {
    PyObject *from[6];
    Py_ssize_t postings, same, ranges, words, rows, room;
    if (!PyArg_ParseTuple(given, "OOOOOO", &from[0], &from[1], &from[2], &from[3], &from[4], &from[5])) return NULL;
    Arguments arguments = {.held = 0};
    const int32_t *holders = take(&arguments, from[0], 0, 4, &postings);
    const uint16_t *counts = take(&arguments, from[1], 0, 2, &same);
    const int64_t *range = take(&arguments, from[2], 0, 8, &ranges);
    const float *weights = take(&arguments, from[3], 0, 4, &words);
    const float *saturation = take(&arguments, from[4], 0, 4, &rows);
    float *scores = take(&arguments, from[5], 1, 4, &room);
    if (!holders || !counts || !range || !weights || !saturation || !scores || postings != same || ranges != 2 * words ||
        rows != room)
        return fail(&arguments, "add_words: the arrays do not fit together");
    Py_BEGIN_ALLOW_THREADS
    memset(scores, 0, (size_t)rows * sizeof(float));
    for (Py_ssize_t word = 0; word < words; word++) {
        Py_ssize_t end = range[2 * word + 1] < postings ? range[2 * word + 1] : postings;
        for (Py_ssize_t at = range[2 * word] < 0 ? 0 : range[2 * word]; at < end; at++) {
            uint32_t row = (uint32_t)holders[at];
            if (row >= rows) continue;
            float count = (float)counts[at];
            scores[row] += weights[word] * count / (count + saturation[row]);
        }
    }
    Py_END_ALLOW_THREADS
    give_back(&arguments);
    Py_RETURN_NONE;
}

/* The greatest of each block of scores. None is below 0, so that they are ordered as whole numbers are. */
#define GREATEST                                                                                  \
    for (Py_ssize_t first = 0; first < rows; first += BLOCK) {                                    \
        Py_ssize_t end = first + BLOCK < rows ? first + BLOCK : rows;                             \
        int32_t most = 0, one;                                                                    \
        for (Py_ssize_t row = first; row < end; row++) {                                          \
            memcpy(&one, scores + row, sizeof one);                                               \
            most = one > most ? one : most;                                                       \
        }                                                                                         \
        memcpy(blocks + first / BLOCK, &most, sizeof most);                                       \
    }

typedef void (*Greatest)(const float *, Py_ssize_t, float *);

static void greatest_anywhere(const float *scores, Py_ssize_t rows, float *blocks) { GREATEST }

#ifdef X86
__attribute__((target("avx2"))) static void greatest_avx2(const float *scores, Py_ssize_t rows, float *blocks) { GREATEST }
#endif

static Greatest greatest_here(void) {
#ifdef X86
    if (__builtin_cpu_supports("avx2")) return greatest_avx2;
#endif
    return greatest_anywhere;
}

/* The least of those kept is at the root. */
static void sift(float *heap, Py_ssize_t size, float value) {
    Py_ssize_t at = 0, child;
    while ((child = 2 * at + 1) < size) {
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

static PyObject *best(PyObject *self, PyObject *given) {
    PyObject *from[3];
    Py_ssize_t rows, masked, room, wanted;
    if (!PyArg_ParseTuple(given, "OOnO", &from[0], &from[1], &wanted, &from[2])) return NULL;
    Arguments arguments = {.held = 0};
    const float *scores = take(&arguments, from[0], 0, 4, &rows);
    const uint8_t *mask = take(&arguments, from[1], 0, 1, &masked);
    int32_t *found = take(&arguments, from[2], 1, 4, &room);
    if (broken() || !scores || !found || wanted < 1 || room < wanted || (mask && masked != rows))
        return fail(&arguments, "best: the arrays do not fit together");
    float *heap = calloc((size_t)wanted, sizeof(float)), *blocks = malloc((size_t)(rows / BLOCK + 1) * sizeof(float));
    if (!heap || !blocks) {
        free(heap); free(blocks); give_back(&arguments);
        return PyErr_NoMemory();
    }
    Py_ssize_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    greatest_here()(scores, rows, blocks);
    for (Py_ssize_t block = 0; block * BLOCK < rows; block++) {
        if (blocks[block] <= heap[0]) continue;
        Py_ssize_t end = (block + 1) * BLOCK < rows ? (block + 1) * BLOCK : rows;
        for (Py_ssize_t row = block * BLOCK; row < end; row++)
            if (scores[row] > heap[0] && (!mask || mask[row])) sift(heap, wanted, scores[row]);
    }
    /* What is less by rounding alone could be as good. */
    float least = heap[0] - heap[0] * 1e-5f;
    for (Py_ssize_t block = 0; block * BLOCK < rows && count < room; block++) {
        if (blocks[block] < least) continue;
        Py_ssize_t end = (block + 1) * BLOCK < rows ? (block + 1) * BLOCK : rows;
        for (Py_ssize_t row = block * BLOCK; row < end && count < room; row++)
            if (scores[row] >= least && scores[row] > 0 && (!mask || mask[row])) found[count++] = (int32_t)row;
    }
    Py_END_ALLOW_THREADS
    free(blocks);
    free(heap);
    give_back(&arguments);
    return PyLong_FromSsize_t(count);
}

static PyObject *held(PyObject *self, PyObject *given) {
    PyObject *from[5];
    Py_ssize_t postings, same, ranges, wanted, room;
    if (!PyArg_ParseTuple(given, "OOOOO", &from[0], &from[1], &from[2], &from[3], &from[4])) return NULL;
    Arguments arguments = {.held = 0};
    const int32_t *holders = take(&arguments, from[0], 0, 4, &postings);
    const uint16_t *counts = take(&arguments, from[1], 0, 2, &same);
    const int64_t *range = take(&arguments, from[2], 0, 8, &ranges);
    const int32_t *rows = take(&arguments, from[3], 0, 4, &wanted);
    uint16_t *found = take(&arguments, from[4], 1, 2, &room);
    if (!holders || !counts || !range || !rows || !found || postings != same || ranges % 2 || room != ranges / 2 * wanted)
        return fail(&arguments, "held: the arrays do not fit together");
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t word = 0; word < ranges / 2; word++) {
        Py_ssize_t first = range[2 * word] < 0 ? 0 : range[2 * word];
        Py_ssize_t end = range[2 * word + 1] < postings ? range[2 * word + 1] : postings;
        for (Py_ssize_t place = 0; place < wanted; place++) {
            Py_ssize_t low = first, high = end;
            while (low < high) {
                Py_ssize_t middle = low + (high - low) / 2;
                if (holders[middle] < rows[place]) low = middle + 1; else high = middle;
            }
            found[word * wanted + place] = low < end && holders[low] == rows[place] ? counts[low] : 0;
        }
    }
    Py_END_ALLOW_THREADS
    give_back(&arguments);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"nearest_codes", nearest_codes, METH_VARARGS, NULL},
    {"products", products, METH_VARARGS, NULL},
    {"add_words", add_words, METH_VARARGS, NULL},
    {"best", best, METH_VARARGS, NULL},
    {"held", held, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&module); }
