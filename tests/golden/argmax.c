// r_3: in0 tmp0
#include <math.h>

void r_3(float* restrict data0, float* restrict data1) {
  for (int ridx0 = 0; ridx0 < 3; ridx0++) {
    float acc0;
    acc0 = -INFINITY;
    for (int ridx1 = 0; ridx1 < 5; ridx1++) {
      float val1 = acc0;
      float val2 = data0[((ridx0*5)+ridx1)];
      acc0 = (((val1>val2)|(val1!=val1))?val1:val2);
    }
    float val3 = acc0;
    data1[ridx0] = val3;
  }
}

// r_3: in0 tmp0 tmp1
void r_3(float* restrict data0, float* restrict data1, int* restrict data2) {
  for (int ridx0 = 0; ridx0 < 3; ridx0++) {
    int acc0;
    acc0 = (-2147483647-1);
    float val1 = data1[ridx0];
    for (int ridx1 = 0; ridx1 < 5; ridx1++) {
      int val2 = acc0;
      float val3 = data0[((ridx0*5)+ridx1)];
      int alu4 = (((val3==val1)|(val3!=val3))?((ridx1*-1)+5):0);
      acc0 = ((val2>alu4)?val2:alu4);
    }
    int val5 = acc0;
    data2[ridx0] = val5;
  }
}

// e_3: tmp1 out0
void e_3(int* restrict data0, int* restrict data1) {
  for (int ridx0 = 0; ridx0 < 3; ridx0++) {
    int val1 = data0[ridx0];
    data1[ridx0] = ((val1*-1)+5);
  }
}
