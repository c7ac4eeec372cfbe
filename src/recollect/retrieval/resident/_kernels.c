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
#define MOST 8

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

typedef void (*Distances)(const uint64_t *, Py_ssize_t, const uint64_t *, Py_ssize_t, Py_ssize_t, uint16_t *);

/* `stride`: from one word of a row to its next. */
#define DISTANCES(NAME, BITS)                                                                                   \
    static void NAME(const uint64_t *codes, Py_ssize_t stride, const uint64_t *query, Py_ssize_t rows,          \
                     Py_ssize_t words, uint16_t *distances) {                                                   \
        for (Py_ssize_t first = 0; first < rows; first += BLOCK) {                                              \
            uint64_t sums[BLOCK] = {0};                                                                         \
            Py_ssize_t size = rows - first < BLOCK ? rows - first : BLOCK;                                      \
            for (Py_ssize_t word = 0; word < words; word++) {                                                   \
                const uint64_t *own = codes + word * stride + first, asked = query[word];                       \
                for (Py_ssize_t row = 0; row < size; row++) sums[row] += (uint64_t)BITS(own[row] ^ asked);      \
            }                                                                                                   \
            for (Py_ssize_t row = 0; row < size; row++) distances[first + row] = (uint16_t)sums[row];           \
        }                                                                                                       \
    }

DISTANCES(distances_anywhere, bits)
#ifdef X86
__attribute__((target("popcnt"))) DISTANCES(distances_popcnt, __builtin_popcountll)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq"))) DISTANCES(distances_avx512, __builtin_popcountll)
#endif

static Distances distances_here(void) {
#ifdef X86
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq"))
        return distances_avx512;
    if (__builtin_cpu_supports("popcnt")) return distances_popcnt;
#endif
    return distances_anywhere;
}

static PyObject *nearest_codes(PyObject *self, PyObject *given) {
    PyObject *from[5];
    Py_ssize_t wanted, items, words, ends, masked, room;
    if (!PyArg_ParseTuple(given, "OOOOnO", &from[0], &from[1], &from[2], &from[3], &wanted, &from[4])) return NULL;
    Arguments arguments = {.held = 0};
    const uint64_t *codes = take(&arguments, from[0], 0, 8, &items);
    const uint64_t *query = take(&arguments, from[1], 0, 8, &words);
    const int64_t *range = take(&arguments, from[2], 0, 8, &ends);
    const uint8_t *mask = take(&arguments, from[3], 0, 1, &masked);
    int32_t *found = take(&arguments, from[4], 1, 4, &room);
    if (broken() || !codes || !query || !range || !found || !words || words > 1000 || wanted < 1 || room < wanted ||
        items % words || ends % 2 || (mask && masked != items / words))
        return fail(&arguments, "nearest_codes: the arrays do not fit together");
    Py_ssize_t rows = items / words, size = 0, count = 0, most = 64 * words + 1;
    for (Py_ssize_t at = 0; at < ends; at += 2) {
        if (range[at] < 0 || range[at] > range[at + 1] || range[at + 1] > rows || size > rows)
            return fail(&arguments, "nearest_codes: the ranges are not within the rows");
        size += range[at + 1] - range[at];
    }
    /* Four counts of each distance: neighbours that are equally far would wait for one another. */
    uint32_t *counted = calloc((size_t)(4 * most), sizeof(uint32_t));
    uint16_t *distances = malloc((size_t)(size ? size : 1) * sizeof(uint16_t)), *here = distances;
    if (!counted || !distances) {
        free(counted); free(distances); give_back(&arguments);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t at = 0; at < ends; here += range[at + 1] - range[at], at += 2) {
        Py_ssize_t first = (Py_ssize_t)range[at], length = (Py_ssize_t)range[at + 1] - first;
        distances_here()(codes + first, rows, query, length, words, here);
        for (Py_ssize_t row = 0; row < length; row++) {
            if (mask && !mask[first + row]) here[row] = UINT16_MAX;
            else counted[(row & 3) * most + here[row]]++;
        }
    }
    /* All that are nearer than the furthest of those wanted, and of those at its distance as many as there is room for. */
    Py_ssize_t furthest = 0, nearer = 0;
    for (; furthest < most - 1; furthest++) {
        Py_ssize_t equal = 0;
        for (int part = 0; part < 4; part++) equal += counted[part * most + furthest];
        if (nearer + equal >= wanted) break;
        nearer += equal;
    }
    Py_ssize_t tied = room - nearer;
    here = distances;
    for (Py_ssize_t at = 0; at < ends; at += 2) {
        for (Py_ssize_t row = (Py_ssize_t)range[at]; row < range[at + 1] && count < room; row++, here++)
            if (*here < furthest || (*here == furthest && tied-- > 0)) found[count++] = (int32_t)row;
        if (count == room) break;
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

/* The score that the worst of those wanted has among some rows; 0 where there are fewer. Less by rounding is as good. */
static float least_of(const float *scores, const int32_t *rows, Py_ssize_t size, float *heap, Py_ssize_t wanted) {
    memset(heap, 0, (size_t)wanted * sizeof(float));
    for (Py_ssize_t at = 0; at < size; at++)
        if (scores[rows[at]] > heap[0]) sift(heap, wanted, scores[rows[at]]);
    return heap[0] - heap[0] * 1e-5f;
}

/* The first place from `low` on whose row is not less. */
static Py_ssize_t place_of(const int32_t *holders, Py_ssize_t low, Py_ssize_t high, int32_t row) {
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (holders[middle] < row) low = middle + 1; else high = middle;
    }
    return low;
}

static int ascending(const void *one, const void *other) {
    int32_t first = *(const int32_t *)one, second = *(const int32_t *)other;
    return (first > second) - (first < second);
}

/* Looking a row up among those that hold a word takes as long as reading so many of these. */
#define LOOKED_UP 32

/* Words come by what they add at most. Once the others together cannot lift a row among the best, they are looked up in
   the rows that can still get there only (MaxScore; Turtle and Flood 1995). */
static PyObject *best_by_words(PyObject *self, PyObject *given) {
    PyObject *from[8];
    float constant, slope;
    Py_ssize_t postings, same, ends, numbers, rows, masked, scored, room, wanted;
    if (!PyArg_ParseTuple(given, "OOOOOffOOnO", &from[0], &from[1], &from[2], &from[3], &from[4], &constant, &slope,
                          &from[5], &from[6], &wanted, &from[7])) return NULL;
    Arguments arguments = {.held = 0};
    const int32_t *holders = take(&arguments, from[0], 0, 4, &postings);
    const uint16_t *counts = take(&arguments, from[1], 0, 2, &same);
    const int64_t *range = take(&arguments, from[2], 0, 8, &ends);
    const float *weights = take(&arguments, from[3], 0, 4, &numbers);
    const int32_t *lengths = take(&arguments, from[4], 0, 4, &rows);
    const uint8_t *mask = take(&arguments, from[5], 0, 1, &masked);
    float *scores = take(&arguments, from[6], 1, 4, &scored);
    int32_t *found = take(&arguments, from[7], 1, 4, &room);
    Py_ssize_t words = ends / 2, size = 0, count = 0;
    if (broken() || !holders || !counts || !range || !weights || !lengths || !scores || !found || postings != same ||
        ends % 2 || numbers != ends || scored != rows || wanted < 1 || room < wanted || (mask && masked != rows))
        return fail(&arguments, "best_by_words: the arrays do not fit together");
    const float *most = weights + words; /* what each word and those behind it add at most */
    float *heap = malloc((size_t)wanted * sizeof(float)), least = 0;
    int32_t *touched = malloc((size_t)(rows + 1) * sizeof(int32_t));
    if (!heap || !touched) {
        free(heap); free(touched); give_back(&arguments);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t kept = -1; /* so many rows, the first ones, can still get there; -1: any can */
    for (Py_ssize_t word = 0; word < words; word++) {
        Py_ssize_t at = range[2 * word] < 0 ? 0 : (Py_ssize_t)range[2 * word];
        Py_ssize_t end = range[2 * word + 1] < postings ? (Py_ssize_t)range[2 * word + 1] : postings;
        /* No row has more than what the words until now add at most. */
        if (end - at > size / 2 && most[0] > 2 * most[word]) {
            least = least_of(scores, touched, kept < 0 ? size : kept, heap, wanted);
            if (least > most[word]) {
                Py_ssize_t before = kept < 0 ? size : kept;
                kept = 0;
                for (Py_ssize_t one = 0; one < before; one++) {
                    int32_t row = touched[one];
                    if (scores[row] + most[word] < least) continue;
                    touched[one] = touched[kept];
                    touched[kept++] = row;
                }
            }
        }
        if (kept >= 0 && kept < (end - at) / LOOKED_UP) {
            for (Py_ssize_t one = 0; one < kept; one++) {
                int32_t row = touched[one];
                Py_ssize_t place = place_of(holders, at, end, row);
                if (place < end && holders[place] == row)
                    scores[row] += weights[word] * counts[place] / (counts[place] + constant + slope * lengths[row]);
            }
            continue;
        }
        for (; at < end; at++) {
            uint32_t row = (uint32_t)holders[at];
            if (row >= rows || (mask && !mask[row])) continue;
            touched[size] = (int32_t)row; /* without a branch, which nobody could predict */
            size += (scores[row] == 0) & (size < rows);
            scores[row] += weights[word] * counts[at] / (counts[at] + constant + slope * lengths[row]);
        }
    }
    least = least_of(scores, touched, size, heap, wanted);
    for (Py_ssize_t one = 0; one < size; one++)
        if (scores[touched[one]] >= least && scores[touched[one]] > 0) touched[count++] = touched[one];
        else scores[touched[one]] = 0;
    /* Where there are too many, the first rows of those that are as good as the worst. */
    float better = heap[0] + heap[0] * 1e-5f;
    Py_ssize_t all = count, tied = room;
    qsort(touched, (size_t)all, sizeof(int32_t), ascending);
    for (Py_ssize_t one = 0; one < all; one++) tied -= scores[touched[one]] > better;
    count = 0;
    for (Py_ssize_t one = 0; one < all; one++) {
        if (scores[touched[one]] > better || tied-- > 0) found[count++] = touched[one];
        scores[touched[one]] = 0;
    }
    Py_END_ALLOW_THREADS
    free(heap); free(touched); give_back(&arguments);
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
            Py_ssize_t low = place_of(holders, first, end, rows[place]);
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
    {"best_by_words", best_by_words, METH_VARARGS, NULL},
    {"held", held, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernels", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&module); }
