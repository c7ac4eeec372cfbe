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

/* Bits in which codes differ from a query's. */

static int bits(uint64_t word) {
#if defined(__GNUC__)
    return __builtin_popcountll(word);
#else
    word -= (word >> 1) & 0x5555555555555555ULL;
    word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
    return (int)((((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL) * 0x0101010101010101ULL) >> 56);
#endif
}

#define DISTANCES                                                                                          \
    for (Py_ssize_t row = 0; row < rows; row++) {                                                          \
        if (mask && !mask[row]) { distances[row] = UINT16_MAX; continue; }                                 \
        int distance = 0;                                                                                  \
        for (Py_ssize_t word = 0; word < words; word++) distance += bits(codes[row * words + word] ^ query[word]); \
        distances[row] = (uint16_t)distance;                                                               \
        counted[distance]++;                                                                               \
    }

typedef void (*Distances)(const uint64_t *, const uint64_t *, const uint8_t *, Py_ssize_t, Py_ssize_t, uint16_t *, Py_ssize_t *);

static void distances_anywhere(const uint64_t *codes, const uint64_t *query, const uint8_t *mask, Py_ssize_t rows,
                               Py_ssize_t words, uint16_t *distances, Py_ssize_t *counted) { DISTANCES }

#ifdef X86
__attribute__((target("popcnt")))
static void distances_popcnt(const uint64_t *codes, const uint64_t *query, const uint8_t *mask, Py_ssize_t rows,
                             Py_ssize_t words, uint16_t *distances, Py_ssize_t *counted) {
#define bits(word) __builtin_popcountll(word)
    DISTANCES
#undef bits
}
#endif

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
    Py_ssize_t rows = items / words, count = 0, *counted = calloc((size_t)(64 * words + 1), sizeof(Py_ssize_t));
    uint16_t *distances = malloc((size_t)(rows ? rows : 1) * sizeof(uint16_t));
    if (!counted || !distances) {
        free(counted); free(distances); give_back(&arguments);
        return PyErr_NoMemory();
    }
    Distances compare = distances_anywhere;
#ifdef X86
    if (__builtin_cpu_supports("popcnt")) compare = distances_popcnt;
#endif
    Py_BEGIN_ALLOW_THREADS
    compare(codes, query, mask, rows, words, distances, counted);
    /* All that are nearer than the furthest of those wanted, and of those at its distance as many as there is room for. */
    Py_ssize_t furthest = 0, nearer = 0, last = 64 * words;
    while (furthest < last && nearer + counted[furthest] < wanted) nearer += counted[furthest++];
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
    float *heap = calloc((size_t)wanted, sizeof(float));
    if (!heap) {
        give_back(&arguments);
        return PyErr_NoMemory();
    }
    Py_ssize_t count = 0;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t row = 0; row < rows; row++)
        if (scores[row] > heap[0] && (!mask || mask[row])) sift(heap, wanted, scores[row]);
    /* What is less by rounding alone could be as good. */
    float least = heap[0] - heap[0] * 1e-5f;
    for (Py_ssize_t row = 0; row < rows && count < room; row++)
        if (scores[row] >= least && scores[row] > 0 && (!mask || mask[row])) found[count++] = (int32_t)row;
    Py_END_ALLOW_THREADS
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
