/* The parts of ScaLAPACK and its BLACS that the drivers use. */
#ifndef PEERS_SCALAPACK_H
#define PEERS_SCALAPACK_H

void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
void Cblacs_gridexit(int context);
int numroc_(const int *n, const int *block, const int *process, const int *first, const int *all);
void descinit_(int *descriptor, const int *m, const int *n, const int *mb, const int *nb,
               const int *row, const int *column, const int *context, const int *lead, int *info);
void pdgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *da,
             const double *b, const int *ib, const int *jb, const int *db, const double *beta,
             double *c, const int *ic, const int *jc, const int *dc);
void pdpotrf_(const char *uplo, const int *n, double *a, const int *ia, const int *ja,
              const int *da, int *info);
void openblas_set_num_threads(int threads);

/* A square matrix on the grid. */
struct matrix {
    int order, block, rows, columns, grid_rows, grid_columns, row, column;
    int descriptor[9];
    double *data;
};

static struct matrix matrix(int context, int order, int block)
{
    struct matrix m = {.order = order, .block = block};
    int zero = 0, info;
    Cblacs_gridinfo(context, &m.grid_rows, &m.grid_columns, &m.row, &m.column);
    m.rows = numroc_(&order, &block, &m.row, &zero, &m.grid_rows);
    m.columns = numroc_(&order, &block, &m.column, &zero, &m.grid_columns);
    int lead = m.rows > 0 ? m.rows : 1;
    descinit_(m.descriptor, &order, &order, &block, &block, &zero, &zero, &context, &lead, &info);
    m.data = calloc((size_t)lead * (m.columns > 0 ? m.columns : 1), sizeof(double));
    return m;
}

/* Returns the global index of a row of this process. Columns work the same way. */
static int place(int own, int block, int process, int all)
{
    return (own / block * all + process) * block + own % block;
}

#define FOR_ALL_ENTRIES(m, i, j)                                                                   \
    for (int own_j = 0; own_j < (m).columns; own_j++)                                              \
        for (int own_i = 0, i, j = place(own_j, (m).block, (m).column, (m).grid_columns);          \
             own_i < (m).rows && (i = place(own_i, (m).block, (m).row, (m).grid_rows), 1);         \
             own_i++)

#define ENTRY(m) ((m).data[(size_t)own_j * (m).rows + own_i])

#endif
