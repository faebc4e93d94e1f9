/* The row loop: calls a Python function for each row, and writes the results that fit a plan into columns.

   Unlike the kernels, it handles Python objects, and runs under the interpreter's lock. No headers of Python or NumPy are
   needed to compile it, and one library serves all versions: Python passes the addresses of the functions of the stable
   ABI (row_loop.py), and checks on examples that objects have the fields below before it uses the loop. */

#include "native.h"

typedef struct Object Object;

struct Object {
    union {
        uint32_t references; /* the other half of the word has flags since Python 3.14 */
        uintptr_t word;
    } head;
    Object *type;
};

typedef struct {
    Object object;
    char *data;
    int rank;
    intptr_t *shape;
    intptr_t *strides;
    Object *base;
    Object *dtype;
    int flags;
} Array;

enum { C_CONTIGUOUS = 1 };

/* In the order of FUNCTIONS in row_loop.py. */
static struct {
    Object *(*new_function)(const void *, Object *, Object *);
    void (*hold)(Object *);
    void (*drop)(Object *);
    int (*check_signals)(void);
    Object *(*occurred)(void);
    void (*clear)(void);
    Object *(*call)(Object *, Object *, Object *);
    Object *(*call_with)(Object *, ...);
    Object *(*next)(Object *);
    int (*append)(Object *, Object *);
    intptr_t (*list_size)(Object *);
    Object *(*list_item)(Object *, intptr_t);
    intptr_t (*tuple_size)(Object *);
    Object *(*tuple_item)(Object *, intptr_t);
    intptr_t (*dict_size)(Object *);
    Object *(*dict_item)(Object *, Object *);
    int (*contains)(Object *, Object *);
    long long (*integer)(Object *, int *);
    Object *(*new_integer)(long long);
    double (*number)(Object *);
    Object *(*truth)(long);
    int (*is_true)(Object *);
    Object *(*encode)(Object *);
    int (*compare)(Object *, Object *, int);
    int (*set_item)(Object *, intptr_t, Object *);
    int (*resize)(Object *, intptr_t);
    char *(*octets)(Object *);
    int (*next_entry)(Object *, intptr_t *, Object **, Object **);
} py;

/* What a value must be, in the order of the structure. */
typedef struct {
    int64_t kind;
    int64_t count;  /* of the parts of a container, or of the bytes of a number */
    int64_t object; /* index of the type; after it come the keys of a dict, or the objects of a leaf */
    int64_t column; /* index of its column */
} Node;

enum { TUPLE, LIST, DICT, NONE, SCALAR, INTEGER, NUMBER, TRUTH, BYTES, TEXT, INTEGERS, NUMBERS, ROW, ARRAY };

enum { FAILED = -1, DIFFERS, FITS };

typedef struct {
    const Node *node; /* the next one */
    Object *objects;
    Object *columns;
    Object *own_array;
    Object *bytes; /* the type */
    Object *dict, *array; /* other types */
    Object *nothing; /* () */
    Object *given;   /* the arguments of the call */
    int64_t row;
} Writer;

/* Whether a shape is as declared: by an array of sizes, -1 for any, or by (), which allows all. */
static int is_declared(const Writer *writer, const Node *node, const intptr_t *shape, int rank) {
    const Array *sizes = (const Array *)py.tuple_item(writer->objects, node->object + 2);
    if ((const Object *)sizes == writer->nothing)
        return 1;
    if (sizes->shape[0] != rank)
        return 0;
    for (int i = 0; i < rank; i++) {
        int64_t size = ((const int64_t *)sizes->data)[i];
        if (size >= 0 && size != shape[i])
            return 0;
    }
    return 1;
}

/* Append a list of numbers to a bytearray; the next column has the places where the rows begin. */
static int write_list(const Writer *writer, const Node *node, Object *list) {
    Object *values = py.tuple_item(writer->columns, node->column);
    Object *type = py.tuple_item(writer->objects, node->object + 1);
    int64_t *starts = (int64_t *)((Array *)py.tuple_item(writer->columns, node->column + 1))->data + writer->row;
    intptr_t count = py.list_size(list);
    if ((!count && node->kind == INTEGERS) || !is_declared(writer, node, &count, 1))
        return DIFFERS; /* NumPy converts an empty list to floats */
    if (py.resize(values, (intptr_t)(*starts + count) * 8) < 0)
        return FAILED;
    char *to = py.octets(values) + *starts * 8;
    for (intptr_t i = 0; i < count; i++, to += 8) {
        Object *item = py.list_item(list, i);
        if (item->type != type)
            return DIFFERS;
        if (node->kind == INTEGERS) {
            int overflow = 0;
            int64_t integer = py.integer(item, &overflow);
            if (overflow)
                return DIFFERS;
            memcpy(to, &integer, 8);
        } else {
            double number = py.number(item);
            memcpy(to, &number, 8);
        }
    }
    starts[1] = *starts + count;
    return FITS;
}

/* Whether nothing else refers to the memory of an array. */
static int is_new(const Array *array, Object *bytes) {
    const Array *base = (const Array *)array->base;
    if (!base || base->object.type == bytes)
        return 1;
    return base->object.type == array->object.type && base->object.head.references == 1 && !base->base;
}

/* The object that owns the memory of an array. */
static Object *owner_of(Object *array) {
    for (const Object *type = array->type; array->type == type && ((Array *)array)->base;)
        array = ((Array *)array)->base;
    return array;
}

/* Whether the owner of an array's memory is that of a component of the arguments. Not all of these may be found. */
static int is_given(const Writer *writer, Object *owner, Object *given) {
    Object *key, *part;
    intptr_t place = 0;
    if (given->type == writer->array)
        return owner_of(given) == owner;
    if (given->type == writer->nothing->type) {
        while (place < py.tuple_size(given))
            if (is_given(writer, owner, py.tuple_item(given, place++)))
                return 1;
    } else if (given->type == writer->dict) {
        while (py.next_entry(given, &place, &key, &part))
            if (is_given(writer, owner, part))
                return 1;
    }
    return 0;
}

static int write_array(const Writer *writer, const Node *node, Object *value, int alone) {
    Array *array = (Array *)value;
    Object *dtype = py.tuple_item(writer->objects, node->object + 1);
    Object *column = py.tuple_item(writer->columns, node->column);
    int same = array->dtype == dtype ? 1 : py.compare(array->dtype, dtype, 2);
    if (same <= 0)
        return same;
    if (node->kind == ARRAY) {
        if (!array->rank || !is_declared(writer, node, array->shape, array->rank))
            return DIFFERS;
        if ((alone && is_new(array, writer->bytes)) || is_given(writer, owner_of(value), writer->given))
            return py.append(column, value) < 0 ? FAILED : FITS;
        Object *kept = py.call_with(writer->own_array, value, writer->given, NULL);
        if (!kept)
            return FAILED;
        int failed = py.append(column, kept);
        py.drop(kept);
        return failed < 0 ? FAILED : FITS;
    }
    Array *rows = (Array *)column;
    size_t bytes = (size_t)array->rank * sizeof(intptr_t); /* a number has no shape to compare */
    if (array->rank != rows->rank - 1 || (bytes && memcmp(array->shape, rows->shape + 1, bytes)))
        return DIFFERS;
    if (array->flags & C_CONTIGUOUS)
        memcpy(rows->data + writer->row * rows->strides[0], array->data, (size_t)node->count);
    else if (py.set_item(column, writer->row, value) < 0)
        return FAILED;
    return FITS;
}

/* How many references to a result do not matter: one, or all if it is an argument, which belongs to the library. */
static uint32_t held_by_call(Object *result, Object *given) {
    for (intptr_t i = py.tuple_size(given) - 1; i >= 0; i--)
        if (py.tuple_item(given, i) == result)
            return UINT32_MAX;
    return 1;
}

static intptr_t size_of(const Node *node, Object *container) {
    return node->kind == TUPLE ? py.tuple_size(container)
           : node->kind == LIST ? py.list_size(container)
                                : py.dict_size(container);
}

static Object *item_of(const Writer *writer, const Node *node, Object *container, int64_t i) {
    return node->kind == TUPLE  ? py.tuple_item(container, i)
           : node->kind == LIST ? py.list_item(container, i)
                                : py.dict_item(container, py.tuple_item(writer->objects, node->object + 1 + i));
}

/* Write a value to the columns of its components, at the current row. `held` counts the references that do not matter;
   `alone` is whether its containers have no others. */
static int write_value(Writer *writer, Object *value, uint32_t held, int alone) {
    const Node *node = writer->node++;
    if (value->type != py.tuple_item(writer->objects, node->object))
        return DIFFERS;
    alone = alone && value->head.references <= held;
    if (node->kind <= DICT) {
        if (size_of(node, value) != node->count)
            return DIFFERS;
        for (int64_t i = 0; i < node->count; i++) {
            Object *part = item_of(writer, node, value, i);
            if (!part)
                return py.occurred() ? FAILED : DIFFERS;
            py.hold(part); /* comparing the keys of a dict may run code */
            int written = write_value(writer, part, 2, alone);
            py.drop(part);
            if (written != FITS)
                return written;
        }
        return FITS;
    }
    if (node->kind == NONE)
        return FITS;
    if (node->kind == INTEGERS || node->kind == NUMBERS)
        return write_list(writer, node, value);
    if (node->kind == ROW || node->kind == ARRAY)
        return write_array(writer, node, value, alone);
    Object *column = py.tuple_item(writer->columns, node->column);
    if (node->kind == BYTES)
        return py.append(column, value) < 0 ? FAILED : FITS;
    if (node->kind == TEXT) {
        Object *encoded = py.encode(value);
        if (!encoded) {
            py.clear(); /* Python raises it in its place */
            return DIFFERS;
        }
        int failed = py.append(column, encoded);
        py.drop(encoded);
        return failed < 0 ? FAILED : FITS;
    }
    char *to = ((Array *)column)->data + writer->row * ((Array *)column)->strides[0];
    int overflow = 0;
    int64_t integer;
    double number;
    switch (node->kind) {
    case INTEGER:
        integer = py.integer(value, &overflow);
        memcpy(to, &integer, 8);
        return overflow ? DIFFERS : FITS;
    case NUMBER:
        number = py.number(value);
        memcpy(to, &number, 8);
        return FITS;
    case TRUTH:
        *to = (char)py.is_true(value);
        return FITS;
    default: /* of NumPy: its memory comes after the fields of every object */
        memcpy(to, value + 1, (size_t)node->count);
        return FITS;
    }
}

/* Arguments: function, iterator of its arguments, number of rows, results, plan, objects, columns, a mark,
   own, own_array, numbers, types of arrays, bytes and dicts, ().

   Append to the results what the function returned for each row: the mark if it was written into the columns, itself if
   it is a number or a new array, and otherwise what own() returns. The first that does not fit ends the writing. Without
   arguments, the function is an iterator. Return the number of rows; if it is smaller, the iterator has ended. */
static Object *collect(Object *self, Object *const *args, intptr_t count) {
    (void)self, (void)count;
    Object *function = args[0], *arguments = args[1], *results = args[3], *mark = args[7], *own = args[8];
    Object *numbers = args[10], *array = args[11], *bytes = args[12], *nothing = args[14];
    int unused;
    int64_t rows = py.integer(args[2], &unused);
    const Node *plan = args[4]->type == array ? (const Node *)((Array *)args[4])->data : NULL;
    Writer writer = {plan, args[5], args[6], args[9], bytes, args[13], array, nothing, nothing, 0};
    for (; writer.row < rows; writer.row++) {
        if (py.check_signals() < 0)
            return NULL;
        Object *given = NULL, *result;
        if (arguments == nothing)
            result = py.next(function);
        else
            result = (given = py.next(arguments)) ? py.call(function, given, NULL) : NULL;
        int done = result ? DIFFERS : FAILED;
        if (result && plan) {
            writer.node = plan;
            writer.given = given ? given : nothing;
            done = write_value(&writer, result, held_by_call(result, writer.given), 1);
            if (done == FITS)
                done = py.append(results, mark) < 0 ? FAILED : FITS;
        }
        if (done == DIFFERS) {
            plan = NULL;
            int alone = result->head.references == 1, kept = py.contains(numbers, result->type);
            if (kept || (result->type == array && alone && is_new((Array *)result, bytes))) {
                done = kept < 0 || py.append(results, result) < 0 ? FAILED : FITS;
            } else {
                Object *unshared = py.truth(alone);
                Object *owned = py.call_with(own, result, given ? given : nothing, unshared, NULL);
                done = owned && py.append(results, owned) == 0 ? FITS : FAILED;
                py.drop(unshared);
                if (owned)
                    py.drop(owned);
            }
        }
        if (result)
            py.drop(result);
        if (given)
            py.drop(given);
        if (done == FAILED) {
            if (py.occurred())
                return NULL;
            break;
        }
    }
    return py.new_integer(writer.row);
}

/* Return the loop as a Python function. Called once. */
KERNEL void *row_loop(const void *const *functions) {
    static const struct {
        const char *name;
        Object *(*function)(Object *, Object *const *, intptr_t);
        int flags;
        const char *doc;
    } method = {"collect", collect, 0x80, NULL}; /* METH_FASTCALL */
    memcpy(&py, functions, sizeof py);
    return py.new_function(&method, NULL, NULL);
}
